package document_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/longtest"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// hostile are texts that a server, a file or a user may send.
var hostile = []string{
	"", "-", " ", "tok/s", "ratio", "s", "kv-pressure", "--max-num-seqs", "128", "fired", "suppressed", "not-evaluable",
	"a plain sentence of some length that has to be wrapped because it is longer than the line on most terminals",
	strings.Repeat("long/path-without-any-space_", 9),
	"通义千问-72B-指令微调-模型 в режиме 推論", "Zu\u0308rich e\u0301", "\u202egnp.exe\u202c", "👩‍🚀🚀 launch",
	"\x1b[31mred\x1b[0m\x07", "tab\tnew\nline\r\nend", "\u0085\u2028\u2029", "\xff\xfe broken", `quote " and \ and 'single'`,
	"10 % of 20 %", "–·×→≥±µ°",
}

// values are numbers that arithmetic may produce.
var values = []float64{
	0, 1, -1, .5, 1e-9, -1e-9, .05, .0496, .9994, .99996, 99.95, 999.5, 1000, 1234.5, 123456789, 1e11, 9.999e11, 1e12, 1e15, 1e300, -1e300,
	math.MaxFloat64, math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1),
}

// fill sets every exported field of v to something.
func fill(r *rand.Rand, v reflect.Value) {
	switch v.Interface().(type) {
	case stat.Opt:
		if r.IntN(3) > 0 {
			v.Set(reflect.ValueOf(stat.Some(values[r.IntN(len(values))])))
		}
		return
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(r.Int64N(4e9), 0)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostile[r.IntN(len(hostile))])
	case reflect.Float64:
		v.SetFloat(values[r.IntN(len(values))])
	case reflect.Int, reflect.Int64:
		v.SetInt([]int64{0, 1, 2, 15, -1, 1 << 20, math.MaxInt32, math.MaxInt64, math.MinInt64}[r.IntN(9)])
	case reflect.Uint64:
		v.SetUint(r.Uint64())
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Pointer:
		if r.IntN(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem())
		}
	case reflect.Slice:
		n := r.IntN(4)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(r, v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fill(r, f)
			}
		}
	}
}

// anyDiagnosis returns a random, implausible diagnosis.
func anyDiagnosis(seed uint64) *engine.Diagnosis {
	r := rand.New(rand.NewPCG(seed, 1))
	d := &engine.Diagnosis{}
	fill(r, reflect.ValueOf(d).Elem())
	for _, name := range engine.MeasuredNames {
		if r.IntN(4) > 0 {
			q := engine.NamedQuantity{Name: name}
			fill(r, reflect.ValueOf(&q.Quantity).Elem())
			if r.IntN(2) > 0 {
				q.Unit = tuning.UnitOf(name)
			}
			d.Measured = append(d.Measured, q)
		}
	}
	d.Started = time.Unix(r.Int64N(4e9), 0) // a year of four digits, as JSON's date-time has it
	d.Duration = time.Duration(r.Int64N(int64(time.Hour)))
	return d
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// FuzzPlain checks that any diagnosis is drawn within the width, without foreign control characters, and that colour adds
// only colour.
func FuzzPlain(f *testing.F) {
	for seed := range uint64(150) {
		if longtest.Tests || seed%5 == 0 {
			f.Add(seed, int(20+seed%130), seed%2 == 0, seed%3 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, seed uint64, columns int, ascii, verbose bool) {
		d := anyDiagnosis(seed)
		o := render.Options{Width: columns, ASCII: ascii, Verbose: verbose}
		var plain, colored bytes.Buffer
		must(t, WritePlain(&plain, d, o))
		checkWidth(t, plain.String(), o.Cells())
		checkControls(t, plain.String(), ascii)
		o.Color = true
		must(t, WritePlain(&colored, d, o))
		if diff := cmp.Diff(plain.String(), escapes.ReplaceAllString(colored.String(), "")); diff != "" {
			t.Errorf("colour changes the text:\n%s", diff)
		}
		decoded(t, diagnosed(t, d))
	})
}

func TestNothingIsCutOff(t *testing.T) {
	d := slots()
	d.Target.Model = strings.Repeat("organisation/", 12) + "model"
	d.Target.URL = "http://" + strings.Repeat("sub.", 40) + "example.com:8000/metrics"
	d.Recommendation.Command = "vllm serve " + strings.Repeat("--flag=value ", 20) + strings.Repeat("x", 200)
	for _, columns := range []int{40, 60, 80, 120} {
		var b bytes.Buffer
		must(t, WritePlain(&b, d, render.Options{Width: columns, Verbose: true}))
		checkWidth(t, b.String(), columns)
		flat := strings.NewReplacer("\n", "", " ", "", `\`, "").Replace(b.String())
		for _, want := range []string{d.Target.Model, d.Target.URL, d.Recommendation.Command, d.Facts.Launch} {
			if !strings.Contains(flat, strings.ReplaceAll(want, " ", "")) {
				t.Errorf("at %d columns the page lost %q", columns, want)
			}
		}
	}
}
