package document

import (
	"cmp"
	"io"
	"reflect"

	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// Schemas of the smaller documents.
const (
	CeilingSchema = "rooftop.ceiling/v1"
	DoctorSchema  = "rooftop.doctor/v1"
	RecoverSchema = "rooftop.recover/v1"
)

// WriteCeiling writes c as one rooftop.ceiling/v1 document.
func WriteCeiling(w io.Writer, c *tuning.HardwareCeiling) error {
	inputs := Object{}
	for _, in := range c.Inputs {
		inputs = append(inputs, Member{in.Name, withSource(in)})
	}
	o := Object{{"schema", CeilingSchema}, {"inputs", inputs}}
	if c.Classic != nil {
		o = append(o, Member{"classic", append(members(reflect.ValueOf(*c.Classic)), Member{"min_tp", c.ClassicMinTP})})
	} else {
		o = append(o, Member{"classic", nil}, Member{"classic_reason", cmp.Or(c.ClassicReason, "not computed")})
	}
	return Write(w, append(o, Member{"physical", c.Physical}))
}

// WriteDoctor writes the result of the doctor command as one rooftop.doctor/v1 document.
func WriteDoctor(w io.Writer, d tuning.Doctor) error {
	return Write(w, &struct {
		Schema string `json:"schema"`
		tuning.Doctor
	}{DoctorSchema, d})
}

// WriteRecovered writes the results of recovering servers as one rooftop.recover/v1 document.
func WriteRecovered(w io.Writer, list []tuning.Recovered) error {
	return Write(w, Object{{"schema", RecoverSchema}, {"servers", list}})
}
