#!/usr/bin/env python3
"""Word statistics: arguments as JSON on standard input, the answer as JSON on standard output."""

import collections
import json
import sys


def progress(percent, message):
    """A line that haft takes for progress; everything else on standard error is shown as it is."""
    print("haft:progress", json.dumps({"percent": percent, "message": message}), file=sys.stderr, flush=True)


def main():
    arguments = json.load(sys.stdin)
    words = arguments["text"].lower().split()
    if not words:
        # A JSON object and an exit code other than 0: the caller gets exactly this.
        print(json.dumps({"error": "the text has no words", "hint": "send some"}))
        return 1
    progress(50, "counting")
    count = collections.Counter(words)
    top = [{"word": word, "count": times} for word, times in count.most_common(arguments["top"])]
    progress(100, "done")
    print(json.dumps({"words": len(words), "top": top}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
