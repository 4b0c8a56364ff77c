package document_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// smallGPU and smallModel are entries as a catalog holds them.
func smallGPU() catalog.GPU {
	none := 0.0
	return catalog.GPU{
		Name: "NVIDIA L4", Aliases: []string{"L4", "Tesla L4"}, Vendor: "nvidia", Arch: "Ada sm89", VRAMGiB: 22.49, MemBandwidthGBs: 300,
		FP32TFLOPS: 30.3, TF32TFLOPS: 60.5, BF16TFLOPS: 121, FP8TFLOPS: 242.5, INT8TOPS: 242.5, NVLinkGBs: &none, PCIeGen: 4, TDPW: 72,
		Price: &catalog.Price{OnDemandUSD: .8, SpotUSD: .3, AsOf: "2026-06", Source: "market average"}, Source: "NVIDIA datasheet; vram = nvidia-smi 23034 MiB",
	}
}

func smallModel() catalog.Model {
	return catalog.Model{
		ID: "meta-llama/Llama-3.1-8B-Instruct", Aliases: []string{"Llama 3 8B"}, Family: "Llama 3", TotalParams: 8.03e9, ActiveParams: 8.03e9,
		Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, HeadDim: 128, Intermediate: 14336, Vocab: 128256, Attention: catalog.AttentionGQA,
		MaxPositions: 131072, NativeDType: catalog.BF16, Source: "config.json",
	}
}

// l4 is what that model can reach on some of those GPUs.
func l4(tp int) *Ceiling {
	n := float64(tp)
	config := roofline.Config{GPU: smallGPU(), Model: smallModel(), TP: tp, PP: 1, Weight: catalog.BF16, KV: catalog.BF16, Compute: catalog.BF16}
	in := roofline.CeilingInput{Batch: 16, Context: 1024, Prompt: 1024, Utilization: .92}
	return &Ceiling{
		Inputs: CeilingInputs(config, in, map[string]engine.Source{"model": engine.FromFlag, "gpu": engine.FromFlag, "batch": engine.FromFlag}),
		Classic: &roofline.Classic{
			DecodeTokensPerS: some(18.7 * n), DecodeLower: some(15.9 * n), DecodeUpper: some(19.6 * n), PrefillTokensPerS: some(.614 * n),
			PrefillLower: some(.522 * n), PrefillUpper: some(.645 * n), RidgeBatch: some(202), WeightGB: some(16.06), KVHeadroomGB: some(24.1 - 16.06/n),
			TPOTFloorS: some(.0535 / n), PrefillFloorS: some(1.63 / n), BytesPerParam: some(2), BytesPerParamFrom: "catalog",
		},
		ClassicMinTP: some(1),
		Physical: roofline.CeilingResult{
			StepIdealS: .0572 / n, StepAchievableS: .0724 / n, DecodeIdealTokensPerS: 280 * n, DecodeAchievableTokensPerS: 221 * n,
			DecodeAchievableLower: 177 * n, DecodeAchievableUpper: 265 * n, PrefillIdealTokensPerS: some(8500 * n), PrefillAchievableTokensS: some(5240 * n),
			Binding: "weights", TermsS: roofline.Terms{Weights: .0623 / n, KV: .0087 / n, Fixed: .0012}, IdealTermsS: roofline.Terms{Weights: .05 / n, KV: .0072 / n},
			KVBytesPerToken: 131072, WeightBytes: 16.06e9, KVCapacityTokens: some(22400 * n), KVCapacityLow: some(9000 * n), KVCapacityHigh: some(38800 * n),
			MaxSequences: some(21 * n), RidgeTokens: some(403), Fits: true, MinTP: some(1), Assumptions: []string{"achievable fractions of L40S stand in for NVIDIA L4"},
		},
	}
}

func TestCeilingPlain(t *testing.T) {
	tight := func() *Ceiling {
		c := l4(1)
		c.Physical.Fits, c.Physical.KVCapacityTokens, c.Physical.MinTP = false, some(0), some(2)
		return c
	}
	never := func() *Ceiling {
		c := tight()
		c.Physical.MinTP, c.ClassicMinTP = stat.None, some(42)
		return c
	}
	unknown := func() *Ceiling {
		c := l4(1)
		c.Physical.KVCapacityTokens, c.Physical.MinTP, c.ClassicMinTP = stat.None, stat.None, stat.None
		c.Classic, c.ClassicReason = nil, "the catalog has no FP32 peak for this GPU"
		return c
	}
	for _, c := range []struct {
		name string
		make func() *Ceiling
		o    Options
	}{
		{"ceiling-80", func() *Ceiling { return l4(1) }, Options{Options: render.Options{Width: 80}}},
		{"ceiling-60-ascii-v", func() *Ceiling { return l4(2) }, Options{Options: render.Options{Width: 60, ASCII: true, Verbose: true}}},
		{"ceiling-tight-80", tight, Options{Options: render.Options{Width: 80}}},
		{"ceiling-never-80", never, Options{Options: render.Options{Width: 80}}},
		{"ceiling-unknown-80", unknown, Options{Options: render.Options{Width: 80}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := WriteCeilingPlain(&b, c.make(), c.o); err != nil {
				t.Fatal(err)
			}
			checkWidth(t, b.String(), c.o.Width)
			golden(t, c.name, b.Bytes())
		})
	}
}

func TestCeilingJSON(t *testing.T) {
	s := schema(t, "ceiling.v1.schema.json")
	write := func(c *Ceiling) []byte {
		var b bytes.Buffer
		if err := WriteCeilingJSON(&b, c); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	good := write(l4(1))
	if err := s.Validate(decoded(t, good)); err != nil {
		t.Error(err)
	}
	c := l4(1)
	c.Classic, c.ClassicReason, c.Physical.KVCapacityTokens = nil, "no FP32 peak", stat.None
	if err := s.Validate(decoded(t, write(c))); err != nil {
		t.Error(err)
	}
	for _, x := range []struct{ name, from, to string }{
		{"another schema", "rooftop.ceiling/v1", "rooftop.ceiling/v0"},
		{"no GPU", `"gpu": {`, `"device": {`},
		{"an unknown source", `"source": "flag"`, `"source": "guess"`},
		{"an unknown binding", `"binding": "`, `"binding": "un`},
		{"no terms", `"terms_s"`, `"terms"`},
		{"a negative rate", `"decode_ideal_tokens_per_s": `, `"decode_ideal_tokens_per_s": -`},
	} {
		wrong := strings.Replace(string(good), x.from, x.to, 1)
		if wrong == string(good) {
			t.Fatalf("the document has no %s", x.from)
		}
		if s.Validate(decoded(t, []byte(wrong))) == nil {
			t.Errorf("the schema accepts %s", x.name)
		}
	}
}

func TestDoctor(t *testing.T) {
	checks := []Check{
		{Name: "endpoint", State: CheckOK, Found: "http://localhost:8000/metrics answers in 4.1 ms: vLLM 0.32.0, 53 KB"},
		{Name: "process", State: CheckWarn, Found: "the listener's command line belongs to another user", Effect: "launch facts come from the page and the catalog, and slots are not known: R1 and R5 are not judged", Next: "run rooftop as that user, or give -m"},
		{Name: "NVML", State: CheckBad, Found: "libnvidia-ml.so.1 is there and fails: driver/library version mismatch", Effect: "no GPU reading", Next: "reboot, or reload the kernel module"},
		{Name: "DCGM", State: CheckAbsent, Found: "no --dcgm-url was given"},
	}
	const setcap = `sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep "$(command -v rooftop)"`
	two := Doctor{
		Purposes: []Purpose{
			{ID: "trace", Commands: "trace a GGML runtime", Can: true, Found: "All that it needs is there.", Next: "rooftop trace --pid PID"},
			{ID: "server", Commands: "tune, diagnose and probe a server", Found: "No inference server was found on this machine, and none was named with --url."},
		},
		Checks: []Check{
			{For: "server", Name: "metrics page", State: CheckAbsent, Found: "unreachable: connection refused"},
			{For: "trace", Name: "trace: kernel", State: CheckOK, Found: "Linux 6.18"},
		},
	}
	neither := Doctor{
		Purposes: []Purpose{{ID: "trace", Commands: "trace a GGML runtime", Found: "First missing: privileges (user 65534).", Next: setcap}},
		Checks: []Check{
			{For: "trace", Name: "trace: privileges", State: CheckBad, Found: "user 65534", Effect: "everything: CAP_BPF and CAP_PERFMON or root", Next: setcap},
			{For: "trace", Name: "trace: ring buffer", State: CheckBad, Found: "operation not permitted", Effect: "no event reaches rooftop", Next: setcap},
		},
	}
	for name, c := range map[string]struct {
		found Doctor
		o     Options
	}{
		"doctor-80":         {Doctor{Checks: checks}, Options{Options: render.Options{Width: 80}}},
		"doctor-60-ascii":   {Doctor{Checks: checks}, Options{Options: render.Options{Width: 60, ASCII: true}}},
		"doctor-ok-80":      {Doctor{Checks: checks[:1]}, Options{Options: render.Options{Width: 80}}},
		"doctor-gap-80":     {Doctor{Checks: checks[:2]}, Options{Options: render.Options{Width: 80}}},
		"doctor-fault-80":   {Doctor{Checks: checks[2:3]}, Options{Options: render.Options{Width: 80}}},
		"doctor-two-80":     {two, Options{Options: render.Options{Width: 80}}},
		"doctor-neither-80": {neither, Options{Options: render.Options{Width: 80}}},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := WriteDoctor(&b, c.found, c.o); err != nil {
				t.Fatal(err)
			}
			checkWidth(t, b.String(), c.o.Width)
			golden(t, name, b.Bytes())
		})
	}
}

func TestDoctorJSON(t *testing.T) {
	s := schema(t, "doctor.v1.schema.json")
	write := func(d Doctor) string {
		var b bytes.Buffer
		if err := WriteDoctorJSON(&b, d); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	full := write(Doctor{
		Purposes: []Purpose{{ID: "trace", Commands: "trace a GGML runtime", Can: true, Found: "all is there", Next: "rooftop trace"}},
		Checks: []Check{
			{For: "server", Name: "endpoint", State: CheckOK, Found: "answers <quickly>"},
			{Name: "NVML", State: CheckBad, Found: "fails", Effect: "no GPU reading", Next: "reboot"},
		},
	})
	for name, doc := range map[string]string{"checks": full, "none": write(Doctor{})} {
		if err := s.Validate(decoded(t, []byte(doc))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, key := range []string{`"name": "NVML"`, `"state": "bad"`, `"found": "fails"`, `"effect": "no GPU reading"`, `"next": "reboot"`, `"found": "answers <quickly>"`} {
		if !strings.Contains(full, key) {
			t.Errorf("the document lacks %s:\n%s", key, full)
		}
	}
	for from, to := range map[string]string{"rooftop.doctor/v1": "rooftop.doctor/v0", `"state": "bad"`: `"state": "red"`, `"next"`: `"then"`, `"for": "server"`: `"for": "nobody"`, `"can": true`: `"can": "yes"`} {
		if s.Validate(decoded(t, []byte(strings.ReplaceAll(full, from, to)))) == nil {
			t.Errorf("the schema accepts %s", to)
		}
	}
}

func TestCatalogPages(t *testing.T) {
	bare := catalog.GPU{Name: "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", MemBandwidthGBs: 1792, Source: "datasheet"}
	moe := catalog.Model{ID: "meta-llama/Llama-4-Maverick-17B-128E-Instruct", TotalParams: 400e9, ActiveParams: 17e9, MaxPositions: 1 << 20, NativeDType: catalog.BF16}
	for name, write := range map[string]func(io.Writer, Options) error{
		"gpus-80":   func(w io.Writer, o Options) error { return WriteGPUs(w, []catalog.GPU{smallGPU(), bare}, o) },
		"models-80": func(w io.Writer, o Options) error { return WriteModels(w, []catalog.Model{smallModel(), moe}, o) },
		"gpu-80":    func(w io.Writer, o Options) error { return WriteGPU(w, smallGPU(), o) },
		"model-80":  func(w io.Writer, o Options) error { return WriteModel(w, smallModel(), o) },
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := write(&b, Options{Options: render.Options{}}); err != nil {
				t.Fatal(err)
			}
			checkWidth(t, b.String(), 80)
			golden(t, name, b.Bytes())
		})
	}
	t.Run("every entry fits", func(t *testing.T) {
		cat := catalog.Default()
		var b bytes.Buffer
		o := Options{Options: render.Options{Width: 60}}
		for _, err := range []error{WriteGPUs(&b, cat.GPUs(), o), WriteModels(&b, cat.Models(), o)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, g := range cat.GPUs() {
			if err := WriteGPU(&b, g, o); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(b.String(), g.Name) {
				t.Errorf("%s is not on its page", g.Name)
			}
		}
		for _, m := range cat.Models() {
			if err := WriteModel(&b, m, o); err != nil {
				t.Fatal(err)
			}
		}
		checkWidth(t, b.String(), 60)
	})
}

// failing is a writer whose pipe is closed.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteErrorsAreReturned(t *testing.T) {
	for name, err := range map[string]error{
		"plain":   WritePlain(failing{}, slots(), Options{Options: render.Options{}}),
		"json":    WriteJSON(failing{}, slots()),
		"doctor":  WriteDoctor(failing{}, Doctor{Checks: []Check{{Name: "x"}}}, Options{Options: render.Options{}}),
		"ceiling": WriteCeilingPlain(failing{}, l4(1), Options{Options: render.Options{}}),
	} {
		if err == nil {
			t.Errorf("%s: a failed write is not reported", name)
		}
	}
}
