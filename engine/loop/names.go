package loop

// String returns the name of the phase in documents.
func (p Phase) String() string {
	return [...]string{
		PhaseAttach: "attach", PhaseBaseline: "baseline", PhaseWaiting: "waiting", PhaseApplying: "applying", PhaseDown: "down",
		PhaseSettling: "settling", PhaseMeasuring: "measuring", PhaseWorse: "worse", PhaseReverting: "reverting", PhaseCanary: "canary", PhaseDone: "done",
	}[min(p, PhaseDone)]
}

// MarshalText implements encoding.TextMarshaler.
func (p Phase) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// String returns the state of a source in one word.
func (f Freshness) String() string {
	return [...]string{SourceAbsent: "absent", SourceFresh: "fresh", SourceLate: "late", SourceFailing: "failing"}[min(f, SourceFailing)]
}

// MarshalText implements encoding.TextMarshaler.
func (f Freshness) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// String returns the name of a kind of mark in documents.
func (k MarkKind) String() string {
	return [...]string{MarkDown: "down", MarkUp: "up", MarkChange: "change", MarkMeasure: "measure", MarkVerdict: "verdict"}[min(k, MarkVerdict)]
}

// MarshalText implements encoding.TextMarshaler.
func (k MarkKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// String returns the severity of a journal entry in one word.
func (l Level) String() string {
	return [...]string{LevelInfo: "info", LevelGood: "good", LevelWarn: "warn", LevelBad: "bad"}[min(l, LevelBad)]
}

// MarshalText implements encoding.TextMarshaler.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }
