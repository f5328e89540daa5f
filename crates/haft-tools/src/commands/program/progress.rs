//! Lines on standard error by which a program says how far it is.

use haft_core::OutputStream;
use haft_sdk::ToolCtx;
use serde::Deserialize;

/// What such a line begins with.
const MARK: &[u8] = b"haft:progress ";
/// The longest line that can be one.
const LONGEST: usize = 4096;

/// What stands after the mark.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgressLine {
    #[serde(default)]
    percent: Option<f64>,
    #[serde(default)]
    message: Option<String>,
}

/// Takes standard error as it comes, in whatever pieces, and tells progress from words.
#[derive(Debug, Default)]
pub(super) struct ProgressLines {
    /// The beginning of a line that may be one about progress.
    held: Vec<u8>,
    /// The line that is being read is words.
    is_words: bool,
}

impl ProgressLines {
    /// Takes bytes; words go on to the call's output, progress to observers.
    pub(super) fn take(&mut self, cx: &ToolCtx, bytes: &[u8]) {
        let mut words = Vec::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.piece(cx, line, &mut words);
        }
        if !words.is_empty() {
            cx.write(OutputStream::Stderr, &words);
        }
    }

    fn piece(&mut self, cx: &ToolCtx, piece: &[u8], words: &mut Vec<u8>) {
        let is_end = piece.ends_with(b"\n");
        if self.is_words {
            words.extend_from_slice(piece);
            self.is_words = !is_end;
            return;
        }
        self.held.extend_from_slice(piece);
        let common = self.held.len().min(MARK.len());
        let may_be = self.held[..common] == MARK[..common] && self.held.len() <= LONGEST;
        if !may_be {
            words.append(&mut self.held);
            self.is_words = !is_end;
        } else if is_end {
            let line = std::mem::take(&mut self.held);
            match line.get(MARK.len()..).and_then(|json| serde_json::from_slice::<ProgressLine>(json).ok()) {
                Some(said) => tell(cx, said),
                None => words.extend_from_slice(&line),
            }
        }
    }

    /// Nothing more comes.
    pub(super) fn finish(&mut self, cx: &ToolCtx) {
        let rest = std::mem::take(&mut self.held);
        match rest.strip_prefix(MARK).and_then(|json| serde_json::from_slice::<ProgressLine>(json).ok()) {
            Some(said) => tell(cx, said),
            None if rest.is_empty() => {}
            None => cx.write(OutputStream::Stderr, &rest),
        }
    }
}

fn tell(cx: &ToolCtx, ProgressLine { percent, message }: ProgressLine) {
    let message = message.unwrap_or_default();
    match percent {
        // Between 0 and 100 after this, so it fits.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        Some(percent) => cx.progress(percent.clamp(0.0, 100.0) as u8, &message),
        None => cx.status(&message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_sdk::testing::TestHost;
    use proptest::prelude::*;

    const TEXT: &str = "starting\nhaft:progress {\"percent\": 40, \"message\": \"half\"}\nhaft:progress nonsense\n\
                        haft: x\nhaft:progress {\"message\": \"ä\"}\nhaft:progress {\"percent\": 400}";

    /// The words, and the progress.
    type Heard = (String, Vec<(Option<u8>, Option<String>)>);

    fn in_pieces(cuts: &[usize]) -> Heard {
        let host = TestHost::new();
        let mut lines = ProgressLines::default();
        let mut start = 0;
        for cut in cuts.iter().copied().chain([TEXT.len()]) {
            lines.take(&host.ctx(), &TEXT.as_bytes()[start..cut]);
            start = cut;
        }
        lines.finish(&host.ctx());
        (host.stderr(), host.progress())
    }

    fn expected() -> Heard {
        let progress = vec![
            (Some(40), Some("half".to_owned())),
            (None, Some("ä".to_owned())),
            (Some(100), Some(String::new())),
        ];
        ("starting\nhaft:progress nonsense\nhaft: x\n".to_owned(), progress)
    }

    #[test]
    fn progress_is_told_and_words_stay() {
        assert_eq!(in_pieces(&[]), expected());
        for cut in 0..=TEXT.len() {
            assert_eq!(in_pieces(&[cut]), expected(), "cut at {cut}");
        }
        let every: Vec<usize> = (0..=TEXT.len()).collect();
        assert_eq!(in_pieces(&every), expected());
    }

    #[test]
    fn a_line_that_never_ends_is_words() {
        let host = TestHost::new();
        let mut lines = ProgressLines::default();
        lines.take(&host.ctx(), MARK);
        lines.take(&host.ctx(), &vec![b'x'; 2 * LONGEST]);
        assert_eq!(host.stderr().len(), MARK.len() + 2 * LONGEST, "and nothing is held");
        assert!(lines.held.is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..ProptestConfig::default() })]

        /// However it is cut, and whatever it is: nothing is lost that is not about progress.
        #[test]
        fn words_come_through(text in "(haft:|progress|[ a{\n])*", cut in 0_usize..40) {
            let host = TestHost::new();
            let mut lines = ProgressLines::default();
            let (one, other) = text.split_at(cut.min(text.len()));
            lines.take(&host.ctx(), one.as_bytes());
            lines.take(&host.ctx(), other.as_bytes());
            lines.finish(&host.ctx());
            prop_assert_eq!(host.stderr(), text);
        }
    }
}
