package report

import (
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// folded says that what needs a GPU is told in one line: without one the page would end
// with a screenful of what is not known.
func (r *probePage) folded() bool { return !r.o.Verbose && len(r.s.GPUs) == 0 }

// derivedTopics are what derived figures are about.
var derivedTopics = [...]struct {
	name    string
	figures []string
}{
	{"energy", []string{capture.JoulesPerToken, capture.MillijoulesPer, capture.TokensPerJoule}},
	{"money", []string{capture.DollarsPerMillion}},
	{"shares of the hardware", []string{capture.PowerShare, capture.BandwidthShare, capture.VRAMShare}},
	{"ceiling", []string{capture.CeilingAchievable, capture.CeilingIdeal, capture.CeilingEfficiency}},
}

// needsNoGPU says that a derived figure needs no GPU: where it is not known, that has
// another reason.
func needsNoGPU(name string) bool {
	return name == capture.OutputRate || name == capture.DecodeRate || name == capture.DecodeBatch
}

// topicOf is what a derived figure is about: itself where it belongs to no topic.
func topicOf(name string) string {
	for _, t := range derivedTopics {
		if slices.Contains(t.figures, name) {
			return t.name
		}
	}
	return strings.ReplaceAll(name, "_", " ")
}

// notKnown names in one line what cannot be told without a GPU. A topic of which one
// figure is known is not named: its figures that are not are.
func (r *probePage) notKnown() {
	if !r.folded() {
		return
	}
	var told, list []string
	for _, q := range r.s.Derived {
		if finiteQuantity(q.Quantity).Value.OK {
			told = append(told, topicOf(q.Name))
		}
	}
	add := func(what string) {
		if !slices.Contains(list, what) {
			list = append(list, what)
		}
	}
	for _, q := range r.s.Derived {
		switch topic := topicOf(q.Name); {
		case finiteQuantity(q.Quantity).Value.OK, needsNoGPU(q.Name):
		case slices.Contains(told, topic):
			add(strings.ReplaceAll(q.Name, "_", " "))
		default:
			add(topic)
		}
	}
	if s := &r.s.Sizing; !r.sized() && (s.Verdict != "" || s.Reason != "") {
		add("sizing")
	}
	if len(list) > 0 {
		// Not "because": a figure may lack more than a GPU.
		r.heading("Not known", strings.Join(list, ", ")+" (no GPU was read; -v says why)")
	}
}

// sized says that there is something to read about the size of the hardware, as where
// its GPU is known by name alone.
func (r *probePage) sized() bool { return r.s.Sizing.Text != "" || len(r.s.Sizing.Smaller) > 0 }

// gpuSources are what an absence is called that is one of a way to GPUs.
var gpuSources = [...]string{"GPU", "NVML", "nvidia-smi", "AMD", "processes of the GPUs"}

// toldMissing are the sources that could not be read, without those that the line of
// what is not known stands for.
func (r *probePage) toldMissing() []engine.Missing {
	if !r.folded() {
		return r.c.Missing
	}
	var out []engine.Missing
	for _, m := range r.c.Missing {
		if !slices.Contains(gpuSources[:], m.What) {
			out = append(out, m)
		}
	}
	return out
}
