// Package gpu reads the GPUs of a server: through NVML, through nvidia-smi
// where NVML cannot be loaded, or from a DCGM exporter's page; AMD's from the
// files of their driver, or through amd-smi. [Open] chooses one, and every source
// says what it could not read and what that switches off.
//
// It never changes a GPU: only getters of NVML are called (a test walks the
// source for setters), nvidia-smi and amd-smi are only queried, and no file of a
// driver is written. That no GPU can be read is a state, not an error.
package gpu
