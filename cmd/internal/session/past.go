package session

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/past"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/rules"
)

// Examine diagnoses polls that were made before, such as the scrapes of a Prometheus server. It records
// them like a measurement, unless r is nil.
func Examine(h Header, polls []Poll, end End, version string, r *Recorder) (engine.Diagnosis, error) {
	a, err := NewAnalysis(h)
	if err != nil {
		return engine.Diagnosis{}, err
	}
	r.write(line{Header: &h})
	for i := range polls {
		r.write(line{Poll: &polls[i]})
		a.Add(&polls[i])
	}
	r.write(line{End: &end})
	return a.Diagnose(end, version), nil
}

// Past is a measurement of the past, to be compared or taken apart.
type Past struct {
	past.Measurement
	known  []engine.Facts // at the end of each window
	starts []stat.Opt     // of the server's process, in Unix time, at the end of each window
}

// Reread diagnoses a recording again and keeps what the diagnosis rests on. Of a live session it is the part
// after the last attach.
func Reread(rec *Recording, name, version string) (*Past, error) {
	var p *Past
	var of *Analysis
	a, end, err := analyze(rec, func(a *Analysis, s *engine.Sample, w *engine.Window) {
		if of != a {
			of, p = a, &Past{Measurement: past.Measurement{Name: name}}
		}
		if s.Page != nil {
			p.ReadAt(s.Page)
		}
		if w != nil {
			p.known, p.starts = append(p.known, a.Facts()), append(p.starts, p.LastStart)
		}
	})
	if err != nil {
		return nil, err
	}
	if of != a {
		p = &Past{Measurement: past.Measurement{Name: name}}
	}
	p.Diagnosis = a.Diagnose(end, version)
	p.Inputs, p.Windows = a.header.Inputs, a.windows
	for len(p.known) < len(p.Windows) { // the last one, which the end closed
		p.known, p.starts = append(p.known, a.Facts()), append(p.starts, p.LastStart)
	}
	return p, nil
}

// Limits of the parts of a measurement: each needs windows for the rules, and a page has room for so many.
const (
	partWindows = 5
	mostParts   = 12
)

// Parts returns parts of equal length, each with a diagnosis of its own.
func (p *Past) Parts() []past.Part {
	n := min(mostParts, max(1, len(p.Windows)/partWindows))
	parts := make([]past.Part, 0, n)
	next := 0
	for i := range n {
		part := past.Part{From: p.Duration * time.Duration(i) / time.Duration(n), To: p.Duration * time.Duration(i+1) / time.Duration(n)}
		first := next
		for next < len(p.Windows) && (p.Windows[next].End() <= part.To || i == n-1) {
			next++
		}
		part.Inputs, part.Windows = p.Inputs, p.Windows[first:next]
		known := p.Facts
		if next > first {
			known = p.known[next-1]
			part.FirstStart, part.LastStart = p.starts[first], p.starts[next-1]
		}
		part.Diagnosis = engine.Diagnose(engine.Request{
			Started: p.Started, Duration: part.To, Version: p.Version, Target: p.Target, Facts: known, Windows: part.Windows, Rules: rules.All(),
		})
		parts = append(parts, part)
	}
	return parts
}
