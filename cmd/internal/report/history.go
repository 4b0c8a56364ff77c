package report

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

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
