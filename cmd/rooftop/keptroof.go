package main

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

	"github.com/rooftop-dev/rooftop/cmd/internal/wholefile"
	"github.com/rooftop-dev/rooftop/collect/roof"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// roofSchema names the file of a roof that was kept.
const roofSchema = "rooftop.roof/v1"

// maxKeptRoof bounds that file, in bytes: a roof with a thousand numbers of threads has
// less.
const maxKeptRoof = 1 << 20

// keptRoof is what a machine can do, measured once for later traces.
type keptRoof struct {
	Schema string `json:"schema"`
	roof.Host
	Measured time.Time    `json:"measured"`
	Roof     optrace.Roof `json:"roof"`
}

// roofPath is where the roof of this user's machine is kept.
func roofPath(env func(string) (string, bool)) (string, error) {
	state, err := stateDir(env)
	if err != nil {
		return "", errors.New("neither XDG_STATE_HOME nor HOME names a directory to keep the roof in")
	}
	return filepath.Join(state, "rooftop", "roof.json"), nil
}

// keepRoof keeps a roof for later traces, in place of the one before.
func keepRoof(env func(string) (string, bool), k *keptRoof) (path string, err error) {
	if path, err = roofPath(env); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return path, wholefile.Write(path, 0o600, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(k)
	})
}

// readKeptRoof reads it; nil where none was kept.
func readKeptRoof(env func(string) (string, bool)) (*keptRoof, error) {
	path, err := roofPath(env)
	if err != nil {
		return nil, nil //nolint:nilerr // then none was kept
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	text, err := readFile(path, maxKeptRoof)
	if err != nil {
		return nil, err
	}
	k, err := parseKeptRoof(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

// parseKeptRoof reads the text of the file. What is in it has been measured, of a known
// machine, with every rate a number.
func parseKeptRoof(text []byte) (*keptRoof, error) {
	var k keptRoof
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, fmt.Errorf("it is no roof: %w", err)
	}
	r := &k.Roof
	switch {
	case k.Schema != roofSchema:
		return nil, fmt.Errorf("its schema is %.40q, not %s", k.Schema, roofSchema)
	case r.From != optrace.RoofMeasured && r.From != optrace.RoofPlain, k.Measured.IsZero(), k.CPUs == "":
		return nil, errors.New("it does not say what was measured, when or where")
	case !sound(r.BytesPerSecond, r.FlopsPerSecond, r.Int8PerSecond) || r.BytesPerSecond == 0 || r.Threads < 1:
		return nil, errors.New("its rates are no rates")
	}
	before := 0
	for _, p := range r.ByThreads {
		if p.Threads <= before || !sound(p.BytesPerSecond, p.FlopsPerSecond, p.Int8PerSecond) {
			return nil, errors.New("its rates by threads are no rates, or not in order")
		}
		before = p.Threads
	}
	r.MeasuredOn = k.Measured.Format(time.DateOnly)
	return &k, nil
}

// mostRate is more than any machine does, in bytes or operations a second.
const mostRate = 1e18

func sound(rates ...float64) bool {
	for _, v := range rates {
		if math.IsNaN(v) || v < 0 || v > mostRate {
			return false
		}
	}
	return true
}

// of says that the roof is this machine's; else why not.
func (k *keptRoof) of(here *roof.Host) (why string, same bool) {
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
		return "whose name is not known"
	}
	return name
}
