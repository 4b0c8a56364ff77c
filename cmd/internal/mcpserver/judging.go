package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/cmd/internal/pastruns"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/loop/search"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// sides names the two sides of a comparison.
type sides struct {
	Before string `json:"before" jsonschema:"the measurement before the change, such as m1"`
	After  string `json:"after" jsonschema:"the measurement after the change, such as m2"`
}

type compareArguments struct {
	Before string `json:"before" jsonschema:"a measurement (m1), a recording of rooftop by its path, or a past run by its name, number or last"`
	After  string `json:"after" jsonschema:"another of the same kind; a measurement and a recording can be compared"`
}

type predictArguments struct {
	Measurement string `json:"measurement,omitempty" jsonschema:"the measurement to predict from, such as m1 (default the latest)"`
	Flag        string `json:"flag" jsonschema:"a flag of vLLM, such as --max-num-seqs"`
	To          string `json:"to" jsonschema:"its new value; on or off for a switch"`
}

func (s *Server) addJudging() {
	addTool(s, "verdict", "Verdict on a change",
		"Judge a change by two measurements of one server: better, worse, plateau, inconclusive or not-comparable, with the 95 % interval of the effect. It uses all measurements of this session with the settings of either side: choosing among them cannot make noise look like an effect, and asking again does not raise the error rate. "+
			"Inconclusive says what is still needed. A change made by apply is kept only once its verdict is better.",
		document.VerdictSchema, hints{}, s.verdict)
	addTool(s, "compare", "Compare two measurements",
		"Compare exactly two measurements or recordings: all measured quantities side by side, with an interval if noise can be distinguished from an effect. Two past runs are listed side by side with their own verdicts. To judge a change use verdict.",
		"", hints{}, s.compare)
	addTool(s, "predict", "Predict a change",
		"Predict what a change of one flag would do to throughput and latency at the load of a measurement, as 80 % intervals from the calibrated model, or say why that is not possible. Changes nothing.",
		document.PredictionSchema, hints{}, s.predict)
}

// measurement returns a kept measurement by its name; "" is the latest.
func (s *Server) measurement(name string) (kept, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.measured) == 0 {
		return kept{}, errors.New("nothing has been measured in this session: call measure first")
	}
	if name == "" {
		return s.measured[len(s.measured)-1], nil
	}
	var names []string
	for _, k := range s.measured {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return kept{}, fmt.Errorf("no measurement is called %q; kept are %s", name, strings.Join(names, ", "))
}

// of returns all kept measurements of a server with the settings of one of them, oldest first, with their names.
func (s *Server) of(k *kept) (list []*loop.Measurement, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.measured {
		if o.server == k.server && (o.Name == k.Name || o.SameSettings(k.Measurement)) {
			list, names = append(list, o.Measurement), append(names, o.Name)
		}
	}
	return list, names
}

// look counts the comparisons of two configurations.
type look struct{ times, measurements int }

// plannedLooks is the number of verdicts on two configurations, each with more measurements than the previous one, whose
// intervals hold together.
const plannedLooks = 6

// looked returns the number of earlier looks at two configurations with fewer measurements.
func (s *Server) looked(before, after []string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, n := [2]string{before[0], after[0]}, len(before)+len(after)
	l := s.looks[key]
	if n > l.measurements {
		l = look{l.times + 1, n}
		s.looks[key] = l
	}
	return l.times - 1
}

func (s *Server) verdict(ctx context.Context, _ *mcp.CallToolRequest, in sides) (*result, error) {
	before, err := s.measurement(in.Before)
	if err != nil {
		return nil, err
	}
	after, err := s.measurement(in.After)
	switch {
	case err != nil:
		return nil, err
	case before.Name == after.Name:
		return nil, errors.New("before and after are the same measurement: name two")
	case before.server != after.server:
		return nil, fmt.Errorf("%s and %s are of two servers: a verdict is on a change of one; use compare", before.Name, after.Name)
	}
	c := newComparison(before.Measurement, after.Measurement)
	was, is := []*loop.Measurement{before.Measurement}, []*loop.Measurement{after.Measurement}
	c.BeforeNames, c.AfterNames = []string{before.Name}, []string{after.Name}
	if !before.SameSettings(after.Measurement) { // else there are no two configurations to take in
		was, c.BeforeNames = s.of(&before)
		is, c.AfterNames = s.of(&after)
	}
	c.Delta = loop.ComparePasts(was, is, verdict.Plan{Look: min(s.looked(c.BeforeNames, c.AfterNames), plannedLooks-1), Looks: plannedLooks})
	note := fmt.Sprintf("Judged by %s before and %s after.", strings.Join(c.BeforeNames, ", "), strings.Join(c.AfterNames, ", "))
	if need := c.Delta.Verdict.Need; need != "" && c.Delta.Direction != verdict.Better {
		note += " It needs " + need + "."
	}
	more, err := s.settle(ctx, &before, &after, c)
	if err != nil {
		return nil, err
	}
	return &result{page: tuning.Measurements(c), note: note + more, document: func(w io.Writer) error { return document.WriteVerdict(w, c) }}, nil
}

// newComparison returns a comparison that is not made yet.
func newComparison(before, after *loop.Measurement) *tuning.PastComparison {
	c := &tuning.PastComparison{Before: before, After: after}
	c.Changes, c.LaunchesKnown = before.Changes(after)
	return c
}

func (s *Server) compare(ctx context.Context, _ *mcp.CallToolRequest, in compareArguments) (*result, error) {
	before, err := s.measuredBy(ctx, in.Before)
	if err != nil {
		return nil, err
	}
	after, err := s.measuredBy(ctx, in.After)
	switch {
	case err != nil:
		return nil, err
	case (before == nil) != (after == nil):
		return nil, errors.New("a past run and a measurement cannot be compared: the report of a run does not have its windows")
	case before == nil:
		return s.pastRuns(in.Before, in.After)
	}
	c := newComparison(before, after)
	c.Delta = loop.ComparePast(before, after, verdict.Plan{Goal: verdict.Latency}) // as the command
	return &result{page: tuning.Measurements(c), document: func(w io.Writer) error { return document.WriteCompare(w, c) }}, nil
}

// measuredBy returns a kept measurement, or that of a recording; nil for anything else, which may be a past run.
func (s *Server) measuredBy(ctx context.Context, name string) (*loop.Measurement, error) {
	if filepath.Ext(name) == ".gz" || strings.ContainsRune(name, filepath.Separator) {
		return s.recording(ctx, name)
	}
	if number, isMeasurement := strings.CutPrefix(name, "m"); isMeasurement && number != "" && strings.Trim(number, "0123456789") == "" {
		k, err := s.measurement(name)
		return k.Measurement, err
	}
	return nil, nil
}

// recording reads a recording, as replay does.
func (s *Server) recording(ctx context.Context, path string) (*loop.Measurement, error) {
	f, err := launcher.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := session.OpenRecording(until{ctx, f})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	p, err := session.Reread(r, path, s.c.Version)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// until reads until ctx ends.
type until struct {
	ctx context.Context
	io.Reader
}

func (u until) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.Reader.Read(p)
}

// run returns a stored run by its name, its number or "last", and by nothing that is a path.
func (s *Server) run(name string) (tuning.PastRun, error) {
	if name == "" || strings.ContainsRune(name, filepath.Separator) || filepath.Ext(name) == ".json" || !filepath.IsLocal(name) {
		return tuning.PastRun{}, fmt.Errorf("%q is not the name of a past run", name)
	}
	return pastruns.Find(s.c.Env, name)
}

func (s *Server) pastRuns(names ...string) (*result, error) {
	var list []tuning.PastRun
	for _, name := range names {
		r, err := s.run(name)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return &result{
		page: tuning.History(list), note: "Each run has its own verdicts. Runs are not judged against each other: how much they differ by chance is not known.",
		document: func(w io.Writer) error { return document.WriteHistory(w, list) },
	}, nil
}

func (s *Server) predict(_ context.Context, _ *mcp.CallToolRequest, in predictArguments) (*result, error) {
	k, err := s.measurement(in.Measurement)
	if err != nil {
		return nil, err
	}
	change, err := newChange(in.Flag, in.To)
	if err == nil {
		err = onlyVLLM(&k.Facts)
	}
	if err != nil {
		return nil, err
	}
	change.From = present(k.Measurement, change.Flag)
	r, why := search.Predict(&k.Diagnosis, change)
	if r != nil && r.Launch == "" {
		own := *r
		own.Launch = loop.CommandWithChanges(k.Inputs.LaunchText, change)
		r = &own
	}
	return &result{
		page: tuning.Prediction(&k.Diagnosis, change, r, why), note: "Predicted from " + k.Name + ".",
		document: func(w io.Writer) error { return document.WritePrediction(w, k.Name, change, r, why) },
	}, nil
}

// present returns the value of a setting when it was measured, as a launch spells it; "" if it is unknown.
func present(m *loop.Measurement, flag string) string {
	name := engine.ArgumentName(flag)
	if given, ok := m.Inputs.Launch[name]; ok {
		return loop.SettingText(given.Value)
	}
	for _, f := range tuning.Facts(&m.Facts) {
		if f.Name == name && f.Value != nil {
			return loop.SettingText(fmt.Sprint(f.Value))
		}
	}
	return ""
}

// onlyVLLM refuses a server whose flags are not those of levers.
func onlyVLLM(f *engine.Facts) error {
	if g := f.Dialect(); g.ID != catalog.VLLM {
		return fmt.Errorf("the server is %s: changes are predicted and made here on vLLM only; 'rooftop tune' knows the settings of %s", g.Name, g.Name)
	}
	return nil
}

// newChange returns a change of a setting to a value, both checked. Settings that are no lever may run code, read files or
// open connections (--worker-cls, --otlp-traces-endpoint): a name or a value that an agent was talked into must not reach
// a command line.
func newChange(flag, to string) (engine.Change, error) {
	c := engine.Change{Flag: "--" + strings.ReplaceAll(strings.TrimLeft(flag, "-"), "_", "-"), To: strings.TrimSpace(to)}
	l := lever.Of(c.Flag)
	if l == nil || l.Values == nil {
		return c, fmt.Errorf("%q is none of the settings that are predicted or changed here: %s", flag, settings(func(*lever.Lever) bool { return true }))
	}
	values := l.Values
	if values.Choices != nil {
		if !slices.Contains(values.Choices, c.To) {
			return c, fmt.Errorf("%s takes %s, not %q", c.Flag, strings.Join(values.Choices, " or "), to)
		}
		return c, nil
	}
	v, err := strconv.ParseFloat(c.To, 64)
	if err != nil || !(v >= values.Least && v <= values.Most) || values.Whole && v != math.Trunc(v) {
		return c, fmt.Errorf("%s takes a number from %s to %s, not %q", c.Flag, figure.Significant(values.Least), figure.Significant(values.Most), to)
	}
	c.To = strconv.FormatFloat(v, 'f', -1, 64)
	return c, nil
}
