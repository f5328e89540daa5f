//! Names of things that haft makes up itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        #[schemars(inline)]
        pub struct $name(Uuid);

        impl $name {
            /// A new one that sorts by `at` (UUID version 7). Unique, but not a secret: somebody who sees one may
            /// guess others, so nothing is ever allowed because an id was known.
            pub fn at(at: jiff::Timestamp) -> Self {
                let random = fastrand::u128(..).to_le_bytes();
                let mut ten = [0; 10];
                ten.copy_from_slice(&random[..10]);
                let millis = u64::try_from(at.as_millisecond()).unwrap_or(0);
                $name(uuid::Builder::from_unix_timestamp_millis(millis, &ten).into_uuid())
            }

            /// The id of that UUID.
            pub const fn from_uuid(uuid: Uuid) -> Self {
                $name(uuid)
            }

            /// The UUID itself.
            pub const fn as_uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0.hyphenated())
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map($name)
            }
        }
    };
}

id! {
    /// One call's execution: its way through the five stages.
    ///
    /// ```
    /// use haft_core::ExecutionId;
    /// let id = ExecutionId::at(jiff::Timestamp::UNIX_EPOCH);
    /// assert_eq!(id.to_string().parse::<ExecutionId>().unwrap(), id);
    /// ```
    ExecutionId
}
id! {
    /// A batch of calls that were planned together.
    BatchId
}

macro_rules! secret_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        #[schemars(inline)]
        pub struct $name(String);

        impl $name {
            /// A new one from the system's randomness: it cannot be guessed.
            pub fn random() -> Self {
                $name(format!(concat!($prefix, "{}"), Uuid::new_v4().simple()))
            }

            /// The id of that text, as somebody typed or sent it.
            pub fn from_text(text: impl Into<String>) -> Self {
                $name(text.into())
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

secret_id! {
    /// A question to a person, by which it is answered.
    ///
    /// ```
    /// assert!(haft_core::ApprovalId::random().as_str().starts_with("apr_"));
    /// ```
    ApprovalId, "apr_"
}
secret_id! {
    /// A stored output, by which any range of it is read.
    ///
    /// ```
    /// assert!(haft_core::OutputHandle::random().as_str().starts_with("out_"));
    /// ```
    OutputHandle, "out_"
}
secret_id! {
    /// A call that goes on without its caller, by which it is asked about.
    ///
    /// ```
    /// assert!(haft_core::TaskId::random().as_str().starts_with("tsk_"));
    /// ```
    TaskId, "tsk_"
}
