package collect

// GPUHints describes which GPUs a server's processes use. In a container the driver's
// PIDs are the host's or absent, so only the other fields help.
type GPUHints struct {
	PIDs       []int  // of the process tree, as this machine numbers them
	Visible    string // value of CUDA_VISIBLE_DEVICES, or of ROCm's equivalents
	VisibleSet bool   // whether it is set: set and empty hides every GPU
	// VisibleName is the name of the variable that Visible was read from; "" means CUDA_VISIBLE_DEVICES.
	VisibleName string
	Minors      []int // N of each /dev/nvidiaN that the tree has open, ascending
	Renders     []int // N of each /dev/dri/renderDN that the tree has open, ascending
}
