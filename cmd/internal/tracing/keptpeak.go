package tracing

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/atomicfile"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/collect/machinepeak"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// keptPeakSchema is the schema of a stored machine peak.
const keptPeakSchema = "rooftop.roof/v1"

// maxKeptPeak limits the size of that file, in bytes: a peak with a thousand thread counts is
// smaller.
const maxKeptPeak = 1 << 20

// keptPeak is a machine peak that was measured once and stored for later traces.
type keptPeak struct {
	Schema string `json:"schema"`
	machinepeak.Host
	Measured time.Time    `json:"measured"`
	Roof     optrace.Peak `json:"roof"`
}

// keptPeakPath returns the path of the stored peak of this user and machine.
func keptPeakPath(env func(string) (string, bool)) (string, error) {
	state, err := cli.StateDir(env)
	if err != nil {
		return "", errors.New("neither XDG_STATE_HOME nor HOME names a directory to keep the machine peak in")
	}
	return filepath.Join(state, "rooftop", "roof.json"), nil
}

// keepPeak stores a peak for later traces, and replaces the previous one.
func keepPeak(env func(string) (string, bool), k *keptPeak) (path string, err error) {
	if path, err = keptPeakPath(env); err != nil {
		return "", err
	}
	if err := atomicfile.MakeOwnDir(filepath.Dir(path)); err != nil {
		return "", err
	}
	return path, atomicfile.Write(path, 0o600, func(w io.Writer) error { return document.Write(w, k) })
}

// readKeptPeak reads the stored peak, nil if there is none.
func readKeptPeak(env func(string) (string, bool)) (*keptPeak, error) {
	path, err := keptPeakPath(env)
	if err != nil {
		return nil, nil //nolint:nilerr // then none was stored
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	text, err := cli.ReadFile(path, maxKeptPeak)
	if err != nil {
		return nil, err
	}
	k, err := parseKeptPeak(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

// parseKeptPeak parses and validates a stored peak: it must be measured, on a known machine, with
// valid rates.
func parseKeptPeak(text []byte) (*keptPeak, error) {
	var k keptPeak
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, fmt.Errorf("not a machine peak: %w", err)
	}
	r := &k.Roof
	switch {
	case k.Schema != keptPeakSchema:
		return nil, fmt.Errorf("its schema is %.40q, not %s", k.Schema, keptPeakSchema)
	case r.From != optrace.PeakMeasured && r.From != optrace.PeakPlain, k.Measured.IsZero(), k.CPUs == "":
		return nil, errors.New("it lacks what was measured, when or where")
	case !validRates(r.BytesPerSecond, r.FlopsPerSecond, r.Int8PerSecond) || r.BytesPerSecond == 0 || r.Threads < 1:
		return nil, errors.New("its rates are invalid")
	}
	before := 0
	for _, p := range r.ByThreads {
		if p.Threads <= before || !validRates(p.BytesPerSecond, p.FlopsPerSecond, p.Int8PerSecond) {
			return nil, errors.New("its rates by threads are no rates, or not in order")
		}
		before = p.Threads
	}
	r.MeasuredOn = k.Measured.Format(time.DateOnly)
	return &k, nil
}

// mostRate exceeds any machine's rate, in bytes or operations per second.
const mostRate = 1e18

func validRates(rates ...float64) bool {
	for _, v := range rates {
		if math.IsNaN(v) || v < 0 || v > mostRate {
			return false
		}
	}
	return true
}

// mismatch reports whether the peak was measured on this machine or, if not, why not.
func (k *keptPeak) mismatch(here *machinepeak.Host) (why string, same bool) {
	switch {
	case k.CPU != here.CPU:
		return fmt.Sprintf("it is of another CPU, %s", orUnknown(k.CPU)), false
	case k.CPUs != here.CPUs:
		return fmt.Sprintf("it is of other CPUs, %s, and rooftop may use %s now", k.CPUs, here.CPUs), false
	}
	return "", true
}

func orUnknown(name string) string {
	if name == "" {
		return "of an unknown name"
	}
	return name
}
