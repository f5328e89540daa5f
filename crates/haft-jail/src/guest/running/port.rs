//! A running program, as the engine has it.

use super::*;

impl Guest for InitGuest {
    fn sandbox_id(&self) -> &str {
        &self.sandbox
    }

    fn enforcement(&self) -> &Enforcement {
        &self.enforcement
    }

    fn control(&self) -> Arc<dyn GuestControl> {
        Arc::clone(&self.control) as Arc<dyn GuestControl>
    }

    fn wait<'a>(&'a mut self, sink: OutputSink) -> BoxFuture<'a, Result<GuestEnd, ToolError>> {
        Box::pin(async move {
            if !self.running {
                return Err(ToolError::failed("this program's end was waited for already"));
            }
            self.run(sink).await
        })
    }
}

impl Drop for InitGuest {
    fn drop(&mut self) {
        let socket = self.control.socket.get_ref();
        // Others may hold the control, and with it the socket: its end has to come nevertheless.
        match (self.watch.take(), socket.try_clone()) {
            (Some(watch), Ok(copy)) => {
                let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Write);
                settle_later(watch, copy);
            }
            // What is on record is done by the next haft.
            (None, _) | (_, Err(_)) => {
                let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
            }
        }
    }
}
