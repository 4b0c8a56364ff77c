package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// PastRun is a run that is over, or that was cut off, as far as what is stored of it
// tells.
type PastRun struct {
	Number  int    // in the history, 1 the latest
	Name    string // of the directory, or of the run in a journal
	Path    string // directory of its files
	Journal bool   // the journal of a server is all that is left of it

	Started   time.Time
	Duration  time.Duration // 0 unknown
	Version   string        // of rooftop
	Server    string        // URL
	Model     string
	Simulated bool

	Outcome  PastOutcome
	Exit     int // where Outcome is PastEnded
	Restarts int
	Summary  string // the headline
	Reason   string
	Best     string // launch command of what was kept, redacted
	Changes  []PastChange

	Gain         stat.Opt // of the goal, a ratio
	Low, High    stat.Opt // of its interval
	Made, Within int      // predictions of the goal that were measured, and those that held
	Story        []string // what a journal says, one line a record
}

// PastOutcome says how a run ended.
type PastOutcome string

// Outcomes of a run.
const (
	PastEnded     PastOutcome = "ended"
	PastRunning   PastOutcome = "running"   // it is going on
	PastCutOff    PastOutcome = "cut off"   // it was killed, and what it left is not put right
	PastRecovered PastOutcome = "recovered" // it was killed, and put right
)

// PastChange is a change of a past run.
type PastChange struct {
	N         int
	Changes   []engine.Change
	End       string // kept, reverted, no gain, noise, broken; "" not known
	Direction string // of the verdict, "" none
	Gain      stat.Opt
	Low, High stat.Opt
	// Foretold is what was predicted of the output; absent ends are unknown.
	Foretold [3]stat.Opt
	Reason   string
}

// Tried is how many changes were made; starts with the same settings are none.
func (r *PastRun) Tried() int {
	n := 0
	for i := range r.Changes {
		if r.Changes[i].End != string(engine.IterationNoise) {
			n++
		}
	}
	return n
}

// Kept is how many of them stayed.
func (r *PastRun) Kept() int {
	n := 0
	for i := range r.Changes {
		if end := engine.IterationEnd(r.Changes[i].End); end == engine.IterationKept || end == engine.IterationContinued {
			n++
		}
	}
	return n
}

// storedRun is what is read back of a rooftop.run/v1 document.
type storedRun struct {
	Schema   string
	Rooftop  struct{ Version string }
	Started  time.Time
	Duration float64 `json:"duration_s"`
	Target   struct {
		URL, Model string
		Simulated  bool
	}
	Summary    string
	Reason     string
	Gain       *float64
	Best       *string `json:"best_command"`
	Finished   *storedEnd
	Iterations []storedIteration
}

type storedEnd struct {
	Exit     int            `json:"exit_code"`
	Interval storedInterval `json:"gain_interval"`
	Restarts int
}

type storedIteration struct {
	Iteration int
	End       string
	Changes   []engine.Change
	Predicted []storedPrediction
	Verdict   *struct {
		Direction string
		Reason    string
		Classic   struct {
			Throughput *float64 `json:"throughput_delta_pct"`
		}
		Statistical *struct {
			Effect storedInterval `json:"effect"`
		}
		Predictions []storedPrediction
	}
}

type storedPrediction struct {
	Metric         string
	Low, Mid, High *float64
	Measured       *float64
	Held           *bool
}

// storedInterval is an interval in any of the spellings that run/v1 has had: an
// object with low, mid and high, a pair, or null.
type storedInterval struct{ Low, Mid, High *float64 }

// UnmarshalJSON implements json.Unmarshaler.
func (i *storedInterval) UnmarshalJSON(data []byte) error {
	var pair []*float64
	if json.Unmarshal(data, &pair) == nil {
		if len(pair) == 2 {
			i.Low, i.High = pair[0], pair[1]
		}
		return nil
	}
	type bare storedInterval
	var o bare
	if json.Unmarshal(data, &o) == nil {
		*i = storedInterval(o)
	}
	return nil // what is spelled otherwise is not known
}

// ReadRun reads back what a rooftop.run/v1 document says in short.
func ReadRun(data []byte) (PastRun, error) {
	var doc storedRun
	if err := json.Unmarshal(data, &doc); err != nil {
		return PastRun{}, fmt.Errorf("not a report of a run: %w", err)
	}
	if doc.Schema != RunSchema {
		return PastRun{}, errors.New("not a report of a run: its schema is " + strconv.Quote(doc.Schema) + ", not " + RunSchema)
	}
	r := PastRun{
		Started: doc.Started, Duration: time.Duration(doc.Duration * float64(time.Second)), Version: doc.Rooftop.Version,
		Server: doc.Target.URL, Model: doc.Target.Model, Simulated: doc.Target.Simulated,
		Outcome: PastEnded, Summary: doc.Summary, Reason: doc.Reason, Gain: opt(doc.Gain),
	}
	if doc.Best != nil {
		r.Best = *doc.Best
	}
	if f := doc.Finished; f != nil {
		r.Exit, r.Restarts, r.Low, r.High = f.Exit, f.Restarts, opt(f.Interval.Low), opt(f.Interval.High)
	}
	for i := range doc.Iterations {
		r.Changes = append(r.Changes, doc.Iterations[i].past())
	}
	for i := range doc.Iterations {
		if held := doc.Iterations[i].held(); held != nil {
			r.Made++
			if *held {
				r.Within++
			}
		}
	}
	return r, nil
}

func opt(v *float64) stat.Opt {
	if v == nil {
		return stat.None
	}
	return stat.Some(*v)
}

func (it *storedIteration) past() PastChange {
	c := PastChange{N: it.Iteration, Changes: it.Changes, End: it.End}
	for _, p := range it.Predicted {
		if p.Metric == outputName {
			c.Foretold = [3]stat.Opt{opt(p.Low), opt(p.Mid), opt(p.High)}
		}
	}
	if v := it.Verdict; v != nil {
		c.Direction, c.Reason = v.Direction, v.Reason
		c.Gain = opt(v.Classic.Throughput).Times(0.01)
		if s := v.Statistical; s != nil && s.Effect.Mid != nil {
			c.Gain, c.Low, c.High = opt(s.Effect.Mid), opt(s.Effect.Low), opt(s.Effect.High)
		}
	}
	return c
}

// outputName is what predictions of the output are named by.
const outputName = "generation_tokens_per_s"

// held says whether the prediction of the output came true, nil where nothing tells.
func (it *storedIteration) held() *bool {
	if it.Verdict == nil {
		return nil
	}
	for _, p := range it.Verdict.Predictions {
		if p.Metric == outputName {
			return p.Held
		}
	}
	return nil
}

// WriteHistory lists runs, the latest first, under the server that they were on: the
// servers by their latest run. A line too narrow for the intervals of the gains has the gains alone.
func WriteHistory(w io.Writer, runs []PastRun, o Options) error {
	p := newPage(w, o)
	t := p.history(runs, true)
	if t.natural() > p.width {
		t = p.history(runs, false)
	}
	p.table(0, t)
	return p.flush()
}

func (p *page) history(runs []PastRun, intervals bool) *table {
	t := &table{}
	head := func(s string, right bool) cell { return cell{t: p.text(muted, s), right: right} }
	t.add(head("no.", true), head("began", false), head("kept", true), head("gain", true), head("restarts", true), head("foretold", true), head("ended", false))
	where, order := places(runs)
	for i, r := range order {
		if i == 0 || where[r] != where[order[i-1]] {
			t.add(cell{t: p.text(strong, where[r])})
		}
		gain := spelledGain(r.Gain, stat.None, stat.None)
		if intervals {
			gain = r.gained()
		}
		tone, ended := r.ended()
		t.add(
			cell{t: p.text(muted, strconv.Itoa(r.Number)), right: true},
			cell{t: p.text(body, r.Started.Local().Format("2006-01-02 15:04"))},
			cell{t: p.text(body, r.tally()), right: true},
			cell{t: p.text(accent, gain), right: true},
			cell{t: p.text(body, strconv.Itoa(r.Restarts)), right: true},
			cell{t: p.text(body, r.score()), right: true},
			cell{t: p.text(tone, ended)},
		)
	}
	return t
}

func (r *PastRun) tally() string {
	if r.Tried() == 0 {
		return absent
	}
	return strconv.Itoa(r.Kept()) + nbsp + "of" + nbsp + strconv.Itoa(r.Tried())
}

// gained is the gain with its interval, where one is known.
func (r *PastRun) gained() string { return spelledGain(r.Gain, r.Low, r.High) }

func spelledGain(gain, low, high stat.Opt) string {
	if !finite(gain).OK {
		return absent
	}
	text := figure.Change(gain.V) + nbsp + "%"
	if finite(low).OK && finite(high).OK {
		text += nbsp + "(" + figure.Change(low.V) + nbsp + "to" + nbsp + figure.Change(high.V) + ")"
	}
	return text
}

func (r *PastRun) score() string {
	if r.Made == 0 {
		return absent
	}
	return strconv.Itoa(r.Within) + nbsp + "of" + nbsp + strconv.Itoa(r.Made)
}

func (r *PastRun) ended() (tone, string) {
	switch r.Outcome {
	case PastEnded:
		if r.Exit == 0 {
			return ok, "exit" + nbsp + "0"
		}
		return body, "exit" + nbsp + strconv.Itoa(r.Exit)
	case PastCutOff:
		return bad, "cut" + nbsp + "off"
	}
	return warn, string(r.Outcome)
}

// places names the server of each run, and orders the runs by server. Where nothing
// tells the model of one, it is that of the latest other run at the same address.
func places(runs []PastRun) (where map[*PastRun]string, order []*PastRun) {
	where = map[*PastRun]string{}
	models := map[string]string{}
	for i := range runs {
		if at := runs[i].address(); models[at] == "" {
			models[at] = runs[i].Model
		}
	}
	first := map[string]int{}
	for i := range runs {
		r := &runs[i]
		at := r.address()
		where[r] = cmp.Or(shortModel(cmp.Or(r.Model, models[at])), "no model") + " at " + at
		if _, seen := first[where[r]]; !seen {
			first[where[r]] = i
		}
		order = append(order, r)
	}
	slices.SortStableFunc(order, func(a, b *PastRun) int { return first[where[a]] - first[where[b]] })
	return where, order
}

// address is that of the server, and whether it is a simulated one.
func (r *PastRun) address() string {
	server := strings.TrimPrefix(strings.TrimPrefix(r.Server, "http://"), "https://")
	server = strings.TrimSuffix(strings.TrimSuffix(server, "/metrics"), "/")
	for _, loopback := range []string{"127.0.0.1:", "[::1]:"} {
		if port, ok := strings.CutPrefix(server, loopback); ok {
			server = "localhost:" + port
		}
	}
	if r.Simulated {
		server += ", " + strings.ToLower(Simulated)
	}
	return cmp.Or(server, "no server")
}

func shortModel(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// HistorySchema names the document that WriteHistoryJSON writes.
const HistorySchema = "rooftop.history/v1"

// WriteHistoryJSON writes runs, the latest first, as one rooftop.history/v1 object.
func WriteHistoryJSON(w io.Writer, runs []PastRun) error {
	list := []any{}
	for i := range runs {
		list = append(list, runs[i].object())
	}
	return encode(w, object{{"schema", HistorySchema}, {"runs", list}}, "  ")
}

func (r *PastRun) object() object {
	var exit any
	if r.Outcome == PastEnded {
		exit = r.Exit
	}
	changes := []any{}
	for i := range r.Changes {
		c := &r.Changes[i]
		changes = append(changes, object{
			{"iteration", c.N}, {"changes", changesArray(c.Changes)}, {"end", known(c.End)}, {"direction", known(c.Direction)},
			{"gain", intervalObject(c.Gain, c.Low, c.High)}, {"foretold", intervalObject(c.Foretold[1], c.Foretold[0], c.Foretold[2])}, {"reason", known(c.Reason)},
		})
	}
	source := "report"
	if r.Journal {
		source = "journal"
	}
	var lasted any
	if r.Duration > 0 {
		lasted = r.Duration.Seconds()
	}
	return object{
		{"number", r.Number}, {"name", r.Name}, {"path", r.Path}, {"source", source},
		{"started", r.Started.UTC().Format(time.RFC3339Nano)}, {"duration_s", lasted}, {"rooftop", known(r.Version)},
		{"server", known(r.Server)}, {"model", known(r.Model)}, {"simulated", r.Simulated},
		{"outcome", r.Outcome}, {"exit_code", exit}, {"summary", known(r.Summary)}, {"reason", known(r.Reason)},
		{"tried", r.Tried()}, {"kept", r.Kept()}, {"gain", intervalObject(r.Gain, r.Low, r.High)}, {"restarts", r.Restarts},
		{"predictions", object{{"made", r.Made}, {"within", r.Within}}}, {"best_command", known(r.Best)}, {"changes", changes},
	}
}

// intervalObject is a ratio with its interval, null where it is not known.
func intervalObject(mid, low, high stat.Opt) any {
	if !finite(mid).OK && !finite(low).OK && !finite(high).OK {
		return nil
	}
	return object{{"low", number(low)}, {"mid", number(mid)}, {"high", number(high)}}
}

// Formats that a past run is written in.
const (
	FormatMarkdown = "markdown"
	FormatJSON     = "json"
	FormatHTML     = "html"
)

// WritePastRun writes what is stored of a run in one of the formats. It is for runs
// whose full report is not there in that format.
func WritePastRun(w io.Writer, r *PastRun, format string) error {
	switch format {
	case FormatJSON:
		o := append(object{{"schema", HistorySchema}}, member{"runs", []any{r.object()}}, member{"story", append([]string{}, r.Story...)})
		return encode(w, o, "  ")
	case FormatHTML:
		return r.dossier().html(w, r.Version, nil)
	}
	return r.dossier().markdown(w)
}

func (r *PastRun) dossier() *dossier {
	d := &dossier{
		Title: "rooftop: a run on " + cmp.Or(r.Model, r.Server, "no server"), Simulated: r.Simulated,
		Headline: cmp.Or(r.Summary, r.headline()), Reason: r.Reason, Best: r.Best,
		About: grid{Title: "The run", Heads: []string{"", ""}},
	}
	_, ended := r.ended()
	lastedFor := absent
	if r.Duration > 0 {
		lastedFor = lasted(r.Duration)
	}
	for _, row := range [][2]string{
		{"server", r.Server}, {"model", r.Model}, {"began", r.Started.UTC().Format(time.RFC3339)}, {"lasted", lastedFor}, {"ended", ended},
		{"gain", r.gained()}, {"restarts", strconv.Itoa(r.Restarts)}, {"predictions that held", r.score()}, {"rooftop", r.Version},
	} {
		d.About.Rows = append(d.About.Rows, []string{row[0], cmp.Or(row[1], absent)})
	}
	g := grid{Title: "Changes", Heads: []string{"no.", "change", "foretold", "brought", "outcome", "why"}, Figures: []int{0, 2, 3}}
	for i := range r.Changes {
		c := &r.Changes[i]
		g.Rows = append(g.Rows, []string{
			strconv.Itoa(c.N), cmp.Or(spelledChanges(c.Changes), absent), spelledGain(c.Foretold[1], c.Foretold[0], c.Foretold[2]),
			spelledGain(c.Gain, c.Low, c.High), cmp.Or(c.End, c.Direction, absent), cmp.Or(c.Reason, absent),
		})
	}
	if len(g.Rows) == 0 {
		g.Note = "No change was made or noticed."
	}
	d.Grids = append(d.Grids, g)
	if len(r.Story) > 0 {
		story := grid{Title: "Journal", Heads: []string{"what was written down"}}
		for _, line := range r.Story {
			story.Rows = append(story.Rows, []string{line})
		}
		d.Grids = append(d.Grids, story)
	}
	d.clean()
	return d
}

// headline sums up a run that no report does.
func (r *PastRun) headline() string {
	switch r.Outcome {
	case PastRunning:
		return "This run is going on"
	case PastCutOff:
		return "This run was cut off; 'rooftop recover' says what it left and puts it right"
	case PastRecovered:
		return "This run was cut off, and what it left was put right"
	}
	return "This run has ended"
}

func spelledChanges(list []engine.Change) string {
	var parts []string
	for _, c := range list {
		parts = append(parts, c.String())
	}
	return strings.Join(parts, ", ")
}
