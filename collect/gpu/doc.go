// Package gpu reads the GPUs of a server: through NVML, through nvidia-smi
// where NVML cannot be loaded, or from a DCGM exporter's page. [Open] chooses
// one, and every source says what it could not read and what that switches off.
//
// It never changes a GPU: only getters of NVML are called (a test walks the
// source for setters), and nvidia-smi is only queried. That no GPU can be read
// is a state, not an error.
package gpu
