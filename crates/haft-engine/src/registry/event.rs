//! Changes of the tools, as they are told.

use std::sync::Arc;

/// Something about the tools has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolsEvent {
    /// A tool is there that was not.
    Registered {
        /// The tool.
        name: Arc<str>,
    },
    /// A tool is another one now.
    Replaced {
        /// The tool.
        name: Arc<str>,
    },
    /// A tool is gone.
    Unregistered {
        /// The tool.
        name: Arc<str>,
    },
    /// A tool may be called again.
    Enabled {
        /// The tool.
        name: Arc<str>,
    },
    /// A tool may not be called any more.
    Disabled {
        /// The tool.
        name: Arc<str>,
    },
    /// A tool was configured.
    Configured {
        /// The tool.
        name: Arc<str>,
    },
}
