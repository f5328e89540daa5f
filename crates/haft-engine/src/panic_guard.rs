//! A tool's code may panic anywhere: when it is called, when it is polled, when it is dropped, and in what it panics
//! with. None of it reaches the caller.

use futures_util::FutureExt;
use haft_core::{ErrorCode, ToolError, text};
use std::{
    any::Any,
    future::Future,
    ops::Deref,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Calls code that does not await. A panic in it is an error.
pub(crate) fn guarded<T>(code: impl FnOnce() -> Result<T, ToolError>) -> Result<T, ToolError> {
    // What the closure may leave half-done is dropped with it.
    catch_unwind(AssertUnwindSafe(code)).unwrap_or_else(|panic| Err(panicked(panic)))
}

/// Calls code that awaits. A panic in it is an error.
pub(crate) async fn guarded_async<T>(code: impl Future<Output = T>) -> Result<T, ToolError> {
    AssertUnwindSafe(code).catch_unwind().await.map_err(panicked)
}

/// Holds something of a tool's whose clean-up may panic, and keeps the panic in.
pub(crate) struct PanicGuard<T>(Option<T>);

impl<T> PanicGuard<T> {
    pub(crate) fn new(inner: T) -> Self {
        PanicGuard(Some(inner))
    }

    /// What was here is used up.
    pub(crate) fn nothing() -> Self {
        PanicGuard(None)
    }

    /// Takes it out; from here on its clean-up is somebody else's.
    pub(crate) fn take(mut self) -> Option<T> {
        self.0.take()
    }

    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.0.as_mut()
    }

    /// Lets it go now. A panic in its clean-up is an error.
    pub(crate) fn let_go(mut self) -> Result<(), ToolError> {
        let inner = self.0.take();
        guarded(move || {
            drop(inner);
            Ok(())
        })
    }
}

impl<T: Deref> PanicGuard<T> {
    pub(crate) fn get(&self) -> Option<&T::Target> {
        self.0.as_deref()
    }
}

impl<T> Drop for PanicGuard<T> {
    fn drop(&mut self) {
        if let Some(inner) = self.0.take() {
            let _ = guarded(move || {
                drop(inner);
                Ok(())
            });
        }
    }
}

/// A fixed text of the tool's author may be shown. A text that was put together at run time may hold anything, and
/// is for the operator only.
fn panicked(panic: Box<dyn Any + Send>) -> ToolError {
    let error = match (panic.downcast_ref::<&'static str>(), panic.downcast_ref::<String>()) {
        (Some(fixed), _) => {
            let message = text::one_line(fixed, 200);
            ToolError::new(ErrorCode::Panicked, format!("Tool panicked: {message}"))
        }
        (None, made) => {
            let text = "Tool panicked. Its message is in the operator's record";
            let error = ToolError::new(ErrorCode::Panicked, text);
            made.iter().fold(error, |error, made| error.with_diagnostics(made))
        }
    };
    // What it panicked with may panic, too, and so may that. Two are let go; the third is leaked.
    if let Err(second) = catch_unwind(AssertUnwindSafe(move || drop(panic)))
        && let Err(third) = catch_unwind(AssertUnwindSafe(move || drop(second)))
    {
        std::mem::forget(third);
    }
    error
}
