package catalog

// GPU is one accelerator as its data sheet describes it. Peaks are dense (without sparsity) and per
// device; 0 means unknown.
type GPU struct {
	Name    string   `yaml:"name"` // as NVML (or amd-smi) reports it
	Aliases []string `yaml:"aliases,omitempty"`
	Vendor  string   `yaml:"vendor"` // nvidia, amd, intel, cpu, other
	Arch    string   `yaml:"arch"`   // "Hopper sm90"

	VRAMGiB         float64 `yaml:"vram_gib,omitempty"`
	MemBandwidthGBs float64 `yaml:"mem_bandwidth_gb_s"` // 1e9 bytes per second
	FP32TFLOPS      float64 `yaml:"fp32_tflops,omitempty"`
	TF32TFLOPS      float64 `yaml:"tf32_tflops,omitempty"`
	BF16TFLOPS      float64 `yaml:"bf16_tflops,omitempty"` // fp16 too
	FP8TFLOPS       float64 `yaml:"fp8_tflops,omitempty"`
	INT8TOPS        float64 `yaml:"int8_tops,omitempty"`
	FP4TFLOPS       float64 `yaml:"fp4_tflops,omitempty"`
	// NVLinkGBs is the bidirectional bandwidth of all links, in 1e9 bytes per second; 0 means no
	// NVLink, nil unknown.
	NVLinkGBs *float64 `yaml:"nvlink_gb_s,omitempty"`
	PCIeGen   int      `yaml:"pcie_gen,omitempty"`
	TDPW      float64  `yaml:"tdp_w,omitempty"`

	// Achieved replaces the architecture's achievable fractions on devices that a user measured;
	// may be nil.
	Achieved *Achieved `yaml:"achieved,omitempty"`
	Price    *Price    `yaml:"price,omitempty"`
	Source   string    `yaml:"source"`
}

// Achieved holds measured fractions of peak and fixed costs of one device.
type Achieved struct {
	GEMMBandwidth  float64 `yaml:"gemm_bandwidth"`  // 0..1 of memory bandwidth in weight-bound GEMMs
	AttnBandwidth  float64 `yaml:"attn_bandwidth"`  // 0..1 of memory bandwidth in decode attention
	GEMMCompute    float64 `yaml:"gemm_compute"`    // 0..1 of the dense peak in large GEMMs
	PrefillAttn    float64 `yaml:"prefill_attn"`    // 0..1 of the dense peak in causal attention
	LayerSeconds   float64 `yaml:"layer_seconds"`   // fixed time per layer and step
	StepSeconds    float64 `yaml:"step_seconds"`    // fixed time per step
	RequestSeconds float64 `yaml:"request_seconds"` // fixed time per running request and step
}

// Price is an estimate of the market price of one GPU for one hour.
type Price struct {
	OnDemandUSD float64 `yaml:"on_demand_usd,omitempty"`
	SpotUSD     float64 `yaml:"spot_usd,omitempty"`
	AsOf        string  `yaml:"as_of"` // "2026-06"
	Source      string  `yaml:"source"`
}
