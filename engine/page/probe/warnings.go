package probe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
)

// warnings returns the caveats to the figures.
func (r *report) warnings() []page.Node {
	nodes := r.ended()
	if n := r.failed(); n > 0 {
		text := fmt.Sprintf(" %s of %s", figure.Whole(float64(n)), figure.Counted(r.s.Requests.Sent, "request"))
		nodes = append(nodes, page.Inset(page.Mark(page.Bad, "failed:"), page.Toned(page.Body, text+r.firstFailure())))
	}
	for _, w := range r.s.Warnings {
		nodes = append(nodes, page.Inset(page.Mark(page.Warn, "warning "+w.ID+":"), page.Toned(page.Body, " "+w.Text)))
	}
	return nodes
}

// interrupt is the reason for the end of a capture that the user interrupted.
const interrupt = "interrupt"

// ended returns what ended a run early, and its progress until then.
func (r *report) ended() []page.Node {
	if r.c.Ended == "" {
		return nil
	}
	word, text := "cut short:", " "+r.c.Ended+" after "
	if r.c.Ended == interrupt {
		word, text = "interrupted", " by you after "
	}
	if q := r.Setup.Request; q != nil && r.c.Kind == capture.Probe {
		whole, sent := 0, len(r.c.Requests)
		if s := r.s.Requests; s != nil {
			whole = s.Whole
		}
		text += figure.Whole(float64(whole)) + " of " + figure.Counted(max(q.Repeat, sent), "request") + ", "
	}
	text += figure.Duration(r.c.Span()) + "; figures cover the time until then"
	return []page.Node{page.Inset(page.Mark(page.Warn, word), page.Toned(page.Body, text))}
}

// cutOff reports whether requests were cut off by the end of the run, not by the server.
func (r *report) cutOff(f *capture.Failure) bool { return r.c.Ended == interrupt && f.Interrupted() }

// failed returns the number of requests that failed because of the server or the network.
func (r *report) failed() int {
	q := r.s.Requests
	if q == nil {
		return 0
	}
	n := q.Sent - q.Whole
	for i := range q.Failures {
		if r.cutOff(&q.Failures[i]) {
			n -= q.Failures[i].Count
		}
	}
	return n
}

// firstFailure returns the first error of the failed requests.
func (r *report) firstFailure() string {
	all := slices.DeleteFunc(slices.Clone(r.s.Requests.Failures), func(f capture.Failure) bool { return r.cutOff(&f) })
	switch {
	case len(all) == 0:
		return ""
	case len(all) > 1 || all[0].Example:
		return ", such as: " + all[0].Error
	}
	return ": " + all[0].Error
}

// summarizesGPUGaps reports whether a single line names everything that needs a GPU, instead of a long list of
// unknown figures.
func (r *report) summarizesGPUGaps() bool { return !r.everything && len(r.s.GPUs) == 0 }

// topics group the derived figures that need a GPU.
var topics = [...]struct {
	name    string
	figures []string
}{
	{"energy", []string{capture.JoulesPerToken, capture.MillijoulesPer, capture.TokensPerJoule}},
	{"cost", []string{capture.DollarsPerMillion}},
	{"shares of the hardware", []string{capture.PowerShare, capture.BandwidthShare, capture.VRAMShare}},
	{"ceiling", []string{capture.CeilingAchievable, capture.CeilingIdeal, capture.CeilingEfficiency}},
}

// needsGPU reports whether a derived figure needs a GPU. Others are absent for other reasons.
func needsGPU(name string) bool {
	return name != capture.OutputRate && name != capture.DecodeRate && name != capture.DecodeBatch
}

// topicOf returns the topic of a derived figure, or the figure itself.
func topicOf(name string) string {
	for _, t := range topics {
		if slices.Contains(t.figures, name) {
			return t.name
		}
	}
	return strings.ReplaceAll(name, "_", " ")
}

// unknown names in one line what is unknown without a GPU. If a figure of a topic is known, the other
// figures of the topic are named individually.
func (r *report) unknown() page.Section {
	if !r.summarizesGPUGaps() {
		return page.Section{}
	}
	var known, list []string
	for _, q := range r.s.Derived {
		if q.Value.Finite().OK {
			known = append(known, topicOf(q.Name))
		}
	}
	for _, q := range r.s.Derived {
		name := topicOf(q.Name)
		if slices.Contains(known, name) {
			name = strings.ReplaceAll(q.Name, "_", " ")
		}
		if !q.Value.Finite().OK && needsGPU(q.Name) && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	if s := &r.s.Sizing; !r.sized() && (s.Verdict != "" || s.Reason != "") {
		list = append(list, "sizing")
	}
	if len(list) == 0 {
		return page.Section{}
	}
	// Do not say "because": a figure may lack more than a GPU.
	text := strings.Join(list, ", ") + " (no GPU was read; -v gives the reasons)"
	return page.Section{ID: "unknown", Nodes: []page.Node{page.Paragraph(page.Toned(page.Strong, "Not known"), page.Toned(page.Muted, nbsp+" "+text))}}
}

// sized reports whether the page has a statement on the size of the hardware.
func (r *report) sized() bool { return r.s.Sizing.Text != "" || len(r.s.Sizing.Smaller) > 0 }

// gpuSources are the names of missing sources that affect GPUs.
var gpuSources = [...]string{"GPU", "NVML", "nvidia-smi", "AMD", "processes of the GPUs"}
