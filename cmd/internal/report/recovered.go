package report

import (
	"io"
	"strconv"
	"time"
)

// Recovered is what was found of a server whose run was cut off, and what became of
// it.
type Recovered struct {
	Server string
	Dir    string
	Run    string    // "" where it cannot be read
	Began  time.Time // zero the same
	Remedy string
	Found  []string // sentences
	Steps  []string // what is to be done, in order
	End    string   // "left alone", "to do", "done", "failed"
	Why    string   // it is left alone, or failed; "" neither
}

// WriteRecovered writes what was found of one server and what is to be done about it.
func WriteRecovered(w io.Writer, r *Recovered, o Options) error {
	p := newPage(w, o)
	const column = 10
	p.line(0, p.text(strong, r.Server))
	label := p.text(muted, "found")
	for _, text := range r.Found {
		p.define(2, column, label, p.text(body, text))
		label = p.text(muted, "")
	}
	label = p.text(muted, "to do")
	for i, text := range r.Steps {
		p.define(2, column, label, p.text(body, strconv.Itoa(i+1)+"."+nbsp+text))
		label = p.text(muted, "")
	}
	if r.Why != "" {
		p.define(2, column, p.text(muted, "but"), text{p.mark(warn, r.Why)})
	}
	return p.flush()
}

// RecoverSchema names the document that WriteRecoveredJSON writes.
const RecoverSchema = "rooftop.recover/v1"

// WriteRecoveredJSON writes what was found and done as one rooftop.recover/v1 object.
func WriteRecoveredJSON(w io.Writer, list []Recovered) error {
	out := []any{}
	for i := range list {
		r := &list[i]
		began := ""
		if !r.Began.IsZero() {
			began = r.Began.UTC().Format(time.RFC3339Nano)
		}
		out = append(out, object{
			{"server", r.Server}, {"dir", r.Dir}, {"run", known(r.Run)}, {"began", known(began)}, {"remedy", r.Remedy},
			{"found", append([]string{}, r.Found...)}, {"steps", append([]string{}, r.Steps...)}, {"state", r.End}, {"reason", known(r.Why)},
		})
	}
	return encode(w, object{{"schema", RecoverSchema}, {"servers", out}}, "  ")
}
