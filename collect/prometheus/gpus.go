package prometheus

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/prometheus/common/model"
)

// GPULabel is where the GPU of a [Target] comes from: a label of a series that every DCGM exporter has.
const GPULabel = "modelName of " + gpuSeries

// gpuSeries is the series of the DCGM exporter of which each GPU has one.
const gpuSeries = "DCGM_FI_DEV_GPU_UTIL"

// nameGPUs sets the GPU of each target of a list by the DCGM exporters that were scraped in a range. It stays ""
// where none tells: no GPU is of the server's pod or, for a server without one, of its host, or they have several
// names.
func (s *Source) nameGPUs(ctx context.Context, list []Target, r Range) error {
	found, err := s.query(ctx, fmt.Sprintf("count by (cluster, instance, Hostname, namespace, pod, exported_namespace, exported_pod, modelName) (last_over_time(%s[%s]))", gpuSeries, milliseconds(r)), r)
	if err != nil {
		return err
	}
	gpus, ok := found.(model.Vector)
	if !ok || len(gpus) == 0 {
		return nil
	}
	found, err = s.query(ctx, fmt.Sprintf(`count by (cluster, job, instance, namespace, pod) (last_over_time({__name__=~"%s%s"}[%s]))`, prefixes(), running(), milliseconds(r)), r)
	if err != nil {
		return err
	}
	servers, _ := found.(model.Vector)
	for _, server := range servers {
		i := slices.IndexFunc(list, func(t Target) bool { return labelsOf(t.Labels) == labelsOf(model.LabelSet(server.Metric)) })
		if i >= 0 {
			list[i].GPU = gpuOf(server.Metric, gpus)
		}
	}
	return nil
}

// gpuOf returns the name of the GPUs of one server, "" if none or several fit.
func gpuOf(server model.Metric, gpus model.Vector) string {
	name := model.LabelValue("")
	for _, one := range gpus {
		gpu := one.Metric
		switch {
		case gpu["cluster"] != server["cluster"], gpu["modelName"] == "", !sameWorkload(server, gpu):
		case name != "" && name != gpu["modelName"]:
			return ""
		default:
			name = gpu["modelName"]
		}
	}
	return string(name)
}

// sameWorkload reports whether a GPU is of a server's pod, or of its host where the server has no pod. Where the
// exporter's own labels took the place of those of the pod that uses the GPU, Prometheus calls these exported_pod.
func sameWorkload(server, gpu model.Metric) bool {
	if pod := server["pod"]; pod != "" {
		return pod == gpu["exported_pod"] && server["namespace"] == gpu["exported_namespace"] ||
			pod == gpu["pod"] && server["namespace"] == gpu["namespace"]
	}
	host := hostOf(server[model.InstanceLabel])
	return host != "" && (host == string(gpu["Hostname"]) || host == hostOf(gpu[model.InstanceLabel]))
}

// hostOf returns the host of an instance, "" for one without a port.
func hostOf(instance model.LabelValue) string {
	host, _, _ := net.SplitHostPort(string(instance))
	return host
}
