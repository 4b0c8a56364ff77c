// Package gpu reads the GPUs of a server: NVIDIA's through NVML, through nvidia-smi
// if NVML cannot be loaded, or from a DCGM exporter's page; AMD's from the files of
// their driver. [Open] chooses one of these sources. Each source
// reports what it could not read and what that switches off.
//
// The package never changes a GPU: it calls only getters of NVML (a test searches the
// code for setters), only queries nvidia-smi, and writes no file of a
// driver. A machine without readable GPUs is a state, not an error.
package gpu
