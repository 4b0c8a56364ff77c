package document

import (
	"cmp"
	"io"

	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Schemas of the smaller documents.
const (
	CeilingSchema = "rooftop.ceiling/v1"
	DoctorSchema  = "rooftop.doctor/v1"
	RecoverSchema = "rooftop.recover/v1"
)

type hardwareCeiling struct {
	Schema        string                 `json:"schema"`
	Inputs        Object                 `json:"inputs"`
	Classic       *hardwareClassic       `json:"classic"`
	ClassicReason string                 `json:"classic_reason,omitempty"`
	Physical      roofline.CeilingResult `json:"physical"`
}

type hardwareClassic struct {
	*roofline.Classic
	MinTP stat.Opt `json:"min_tp"`
}

// WriteCeiling writes c as one rooftop.ceiling/v1 document.
func WriteCeiling(w io.Writer, c *tuning.HardwareCeiling) error {
	doc := hardwareCeiling{Schema: CeilingSchema, Inputs: Object{}, Physical: c.Physical}
	for _, in := range c.Inputs {
		doc.Inputs = append(doc.Inputs, Member{in.Name, newFact(in)})
	}
	if c.Classic != nil {
		doc.Classic = &hardwareClassic{c.Classic, c.ClassicMinTP}
	} else {
		doc.ClassicReason = cmp.Or(c.ClassicReason, "not computed")
	}
	return Write(w, &doc)
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
	return Write(w, &struct {
		Schema  string             `json:"schema"`
		Servers []tuning.Recovered `json:"servers"`
	}{RecoverSchema, list})
}
