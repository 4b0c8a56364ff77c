package session

import (
	"github.com/rooftop-dev/rooftop/engine"
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
