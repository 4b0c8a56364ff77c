package prometheus

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/prometheus/common/model"
)

// GPULabel is where the GPU of a [Target] comes from: a label of a series of DCGM exporters.
const GPULabel = "modelName of " + gpuSeries + ", for its pod or host"

// gpuSeries is a series that a DCGM exporter has by default, one for each GPU.
const gpuSeries = "DCGM_FI_DEV_GPU_UTIL"

// nameGPUs sets the GPU of each target of a list, which label matchers chose, by the DCGM exporters that were scraped
// in a range. It stays "" where none tells: no GPU is of the server's pod or, for a server without one, of its host,
// they have several names, or Prometheus refuses the query. A name is a help and no condition.
func (s *Source) nameGPUs(ctx context.Context, list []Target, chosen string, r Range) {
	found, err := s.query(ctx, fmt.Sprintf("count by (cluster, instance, Hostname, namespace, pod, exported_namespace, exported_pod, modelName) (last_over_time(%s[%s]))", gpuSeries+`{GPU_I_PROFILE=""}`, milliseconds(r)), r)
	gpus, _ := found.(model.Vector)
	if err != nil || len(gpus) == 0 {
		return
	}
	found, err = s.query(ctx, fmt.Sprintf(`count by (cluster, job, instance, namespace, pod) (last_over_time({__name__=~"%s%s"%s}[%s]))`, prefixes(), running(), chosen, milliseconds(r)), r)
	servers, _ := found.(model.Vector)
	if err != nil {
		return
	}
	for i := range list {
		var names []string
		for _, server := range servers { // several, if its pod was replaced
			if labelsOf(list[i].Labels) == labelsOf(model.LabelSet(server.Metric)) {
				names = append(names, gpusOf(server.Metric, gpus)...)
			}
		}
		slices.Sort(names)
		if names = slices.Compact(names); len(names) == 1 {
			list[i].GPU = names[0]
		}
	}
}

// gpusOf returns the names of the GPUs of one server.
func gpusOf(server model.Metric, gpus model.Vector) (names []string) {
	for _, one := range gpus {
		if gpu := one.Metric; gpu["cluster"] == server["cluster"] && gpu["modelName"] != "" && sameWorkload(server, gpu) {
			names = append(names, string(gpu["modelName"]))
		}
	}
	return names
}

// sameWorkload reports whether a GPU is of a server's pod, or of its host where the server has no pod. Where the
// exporter's own labels took the place of those of the pod that uses the GPU, Prometheus calls these exported_pod.
func sameWorkload(server, gpu model.Metric) bool {
	if pod := server["pod"]; pod != "" {
		return pod == gpu["exported_pod"] && server["namespace"] == gpu["exported_namespace"] ||
			pod == gpu["pod"] && server["namespace"] == gpu["namespace"]
	}
	host := hostOf(server[model.InstanceLabel])
	return host != "" && !loopback(host) && (host == string(gpu["Hostname"]) || host == hostOf(gpu[model.InstanceLabel]))
}

// loopback reports whether a host is each machine's own name for itself, as of a port that is forwarded.
func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// hostOf returns the host of an instance, "" for one without a port.
func hostOf(instance model.LabelValue) string {
	host, _, _ := net.SplitHostPort(string(instance))
	return host
}
