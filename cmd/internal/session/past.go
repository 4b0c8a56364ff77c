package session

import (
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
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

// Reread diagnoses a recording again and keeps what the diagnosis rests on. Of a live session it is the part
// after the last attach.
func Reread(rec *Recording, name, version string) (*loop.Measurement, error) {
	var p *loop.Measurement
	var of *Analysis
	a, end, err := analyze(rec, func(a *Analysis, s *engine.Sample) {
		if of != a {
			of, p = a, &loop.Measurement{Name: name}
		}
		if s.Page != nil {
			p.ReadAt(s.Page)
		}
	})
	if err != nil {
		return nil, err
	}
	if of != a {
		p = &loop.Measurement{Name: name}
	}
	p.Diagnosis = a.Diagnose(end, version)
	p.Inputs, p.Windows = a.header.Inputs, a.windows
	return p, nil
}
