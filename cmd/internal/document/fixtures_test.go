package document_test

import (
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

func some(v float64) stat.Opt { return stat.Some(v) }

func predict(metric string, low, mid, high float64) engine.Prediction {
	return engine.Prediction{Metric: metric, Unit: "ratio", Low: some(low), Mid: some(mid), High: some(high)}
}

// testdataFile returns the path of a file in the repository's testdata.
func testdataFile(path ...string) string {
	return filepath.Join(append([]string{"..", "..", "..", "testdata"}, path...)...)
}

// replays has the diagnoses of the recordings replayed so far.
var replays sync.Map

// replayed returns the diagnosis of a recording, which a test may change.
func replayed(name string) *engine.Diagnosis {
	v, ok := replays.Load(name)
	if !ok {
		f, err := os.Open(testdataFile("recordings", name+".gz"))
		if err != nil {
			panic(err)
		}
		defer f.Close()
		recording, err := session.OpenRecording(f)
		if err != nil {
			panic(err)
		}
		d, err := session.Replay(recording, "0.1.0")
		if err != nil {
			panic(err)
		}
		v, _ = replays.LoadOrStore(name, d)
	}
	d := v.(engine.Diagnosis)
	d.Measured, d.Findings, d.GPUs = slices.Clone(d.Measured), slices.Clone(d.Findings), slices.Clone(d.GPUs)
	if d.Recommendation != nil {
		r := *d.Recommendation
		r.Predicted = slices.Clone(r.Predicted)
		d.Recommendation = &r
	}
	if c := &d.Ceiling; c.Physical != nil && c.Classic != nil {
		physical, classic := *c.Physical, *c.Classic
		c.Physical, c.Classic = &physical, &classic
	}
	return &d
}

// slots is a server whose 32 slots are taken while twice as many requests wait.
func slots() *engine.Diagnosis {
	d := replayed("sim-seat-capped")
	d.Target.Simulated = false
	return d
}

func kvBound() *engine.Diagnosis { return replayed("sim-kv-preempting") }
func healthy() *engine.Diagnosis { return replayed("sim-healthy") }

// states are diagnoses of each kind.
func states() map[string]func() *engine.Diagnosis {
	all := map[string]func() *engine.Diagnosis{"slots": slots, "kv": kvBound, "healthy": healthy}
	for name, recording := range map[string]string{
		"cpu": "slots4-cpu", "no-load": "sim-idle", "not-evaluable": "sim-not-evaluable", "mla": "sim-mla", "slow-steps": "sim-slow-steps", "client": "sim-prefill-saturated",
		"unhealthy": "sim-stalled", "ranks": "sim-rank-imbalance", "adapters": "sim-lora-slots",
	} {
		all[name] = func() *engine.Diagnosis { return replayed(recording) }
	}
	return all
}
