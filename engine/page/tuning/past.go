package tuning

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// PastRun is a run that ended or was killed, as far as stored.
type PastRun struct {
	Number  int    // in the history; 1 is the latest
	Name    string // of the directory, or of the run in a journal
	Path    string // directory of its files
	Journal bool   // only the journal of the server exists

	Started   time.Time
	Duration  time.Duration // 0 if unknown
	Version   string        // of rooftop
	Server    string        // URL
	Model     string
	Simulated bool
	DryRun    bool // it only showed what it would change

	Outcome  PastOutcome
	Exit     int // set if Outcome is PastEnded
	Restarts int
	Summary  string // the headline
	Reason   string
	Best     string // redacted launch command of the kept configuration
	Changes  []PastChange

	Gain         stat.Opt // change of the goal, a ratio
	Low, High    stat.Opt // interval of Gain
	Made, Within int      // predictions of the goal with an outcome, and those within their range

	Story []string // one line for each record of a journal
}

// PastOutcome is the outcome of a run.
type PastOutcome string

// Outcomes of a run.
const (
	PastEnded     PastOutcome = "ended"
	PastRunning   PastOutcome = "running"   // still in progress
	PastCutOff    PastOutcome = "cut off"   // killed, and its changes are not reverted
	PastRecovered PastOutcome = "recovered" // killed and recovered
)

// PastChange is a change of a past run.
type PastChange struct {
	N         int
	Changes   []engine.Change
	End       string // kept, reverted, no gain, noise, broken; "" if unknown
	Direction string // of the verdict, "" if none
	Gain      stat.Opt
	Low, High stat.Opt
	// Predicted is the prediction of the output: low, middle, high; unknown ends are absent.
	Predicted [3]stat.Opt
	Reason    string
}

// Tried returns the number of changes, without starts with the same settings.
func (r *PastRun) Tried() int {
	n := 0
	for i := range r.Changes {
		if r.Changes[i].End != string(loop.IterationNoise) {
			n++
		}
	}
	return n
}

// Kept returns the number of changes that were kept.
func (r *PastRun) Kept() int {
	n := 0
	for i := range r.Changes {
		if end := loop.IterationEnd(r.Changes[i].End); end == loop.IterationKept || end == loop.IterationContinued {
			n++
		}
	}
	return n
}

// keptOfTried formats the number of kept and of all changes, absent without changes.
func (r *PastRun) keptOfTried() string { return partOf(r.Kept(), r.Tried()) }

// predictionScore formats the number of predictions within their range and of all, absent without outcomes.
func (r *PastRun) predictionScore() string { return partOf(r.Within, r.Made) }

func partOf(n, of int) string {
	if of == 0 {
		return figure.Absent
	}
	return strconv.Itoa(n) + nbsp + "of" + nbsp + strconv.Itoa(of)
}

// GainText formats the gain with its interval, if known.
func (r *PastRun) GainText() string { return Interval(r.Gain, r.Low, r.High) }

// Interval formats a relative change with its interval, if known.
func Interval(mid, low, high stat.Opt) string {
	text := Change(mid)
	if mid.Finite().OK && low.Finite().OK && high.Finite().OK {
		text += nbsp + "(" + figure.Unbroken(figure.Change(low.V)+" to "+figure.Change(high.V)) + ")"
	}
	return text
}

// Ended returns how the run ended, with its tone.
func (r *PastRun) Ended() (page.Tone, string) {
	switch r.Outcome {
	case PastEnded:
		switch {
		case r.DryRun:
			return page.Body, "dry" + nbsp + "run"
		case r.Exit == 0:
			return page.OK, "done"
		}
		return page.Body, cmp.Or(map[int]string{3: "change" + nbsp + "open", 4: "not" + nbsp + "judged", 5: "no" + nbsp + "server", 6: "unhealthy"}[r.Exit], "exit"+nbsp+strconv.Itoa(r.Exit))
	case PastCutOff:
		return page.Bad, "cut" + nbsp + "off"
	}
	return page.Warn, string(r.Outcome)
}

// Headline returns a summary of the run.
func (r *PastRun) Headline() string {
	switch {
	case r.Summary != "":
		return r.Summary
	case r.Outcome == PastRunning:
		return "This run is still under way"
	case r.Outcome == PastCutOff:
		return "This run was cut off; 'rooftop recover' shows what it left and restores the server"
	case r.Outcome == PastRecovered:
		return "This run was cut off, and the server was restored"
	}
	return "This run has ended"
}

// byServer returns the server name of each run, and the runs ordered by server: servers by their latest run.
// A run without a model takes that of the latest other run at the same address.
func byServer(runs []PastRun) (names map[*PastRun]string, order []*PastRun) {
	names = map[*PastRun]string{}
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
		model := cmp.Or(r.Model, models[at])
		names[r] = cmp.Or(model[strings.LastIndexByte(model, '/')+1:], "no model") + " at " + at
		if _, seen := first[names[r]]; !seen {
			first[names[r]] = i
		}
		order = append(order, r)
	}
	slices.SortStableFunc(order, func(a, b *PastRun) int { return first[names[a]] - first[names[b]] })
	return names, order
}

// address returns the address of the server, marked if it is simulated.
func (r *PastRun) address() string {
	server := ShortURL(r.Server)
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

// KubeScheme begins the URL of a server that was named with --kube: kube:llm/deployment/vllm.
const KubeScheme = "kube:"

// ShortURL returns a server's address without the parts that all addresses share.
func ShortURL(url string) string {
	url = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(url, "http://"), "https://"), KubeScheme)
	return strings.TrimSuffix(strings.TrimSuffix(url, "/metrics"), "/")
}
