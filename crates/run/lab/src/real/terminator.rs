//! A TLS terminator in front of a real proxy: when it is started, and what is said of it.

use std::time::Instant;

use super::{PAUSE, RealProxy, version_of};
use crate::description::Description;
use crate::error::LabError;

impl RealProxy {
    /// Starts what speaks TLS to robots in its place, if anything does, once what that waits for is there.
    pub(super) async fn start_terminator(&mut self) -> Result<(), LabError> {
        let Some(terminator) = self.choice.terminator().cloned() else { return Ok(()) };
        let patience = self.choice.description.ready_patience();
        let deadline = Instant::now() + patience;
        while let Some(after) =
            terminator.after.as_ref().filter(|after| !self.work.path().join(after).exists())
        {
            if let Some((_, status)) = self.ended() {
                return Err(self.did_not_start(&format!("it ended ({status}) before there was {after}")));
            }
            if Instant::now() >= deadline {
                let title = &terminator.title;
                let what = format!("{after}, which {title} waits for, was not there within {patience:?}");
                return Err(self.did_not_start(&what));
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.terminator = Some(self.launch_beside(&terminator.program())?);
        Ok(())
    }
}

/// What speaks TLS to robots in its place, for who reads the results; none: it does so itself.
pub(crate) async fn note(description: &Description) -> Result<Option<String>, LabError> {
    let Some(terminator) = &description.tls_terminator else { return Ok(None) };
    let version = version_of(&terminator.version).await.map_err(LabError::run)?;
    let (title, by) = (&description.title, &terminator.title);
    Ok(Some(format!(
        "{title} speaks TLS through {by} {version}, whose processor time and memory count as those of {title}."
    )))
}
