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

// pod is a pod of Kubernetes.
type pod struct{ cluster, namespace, name model.LabelValue }

// NameGPUs sets GPU and GPUs of each target of a list by the DCGM exporters that were scraped in a range. They stay ""
// and 0 if they are unknown: the server's pod (or host, for a server without a pod) has no GPU, its GPUs have several
// names, Prometheus refuses the query, or the query takes longer than 5 s. Names are optional, so no error is
// returned. GPUs of a host are not counted, because not all of them need be the server's.
func (s *Source) NameGPUs(ctx context.Context, list []Target, r Range) {
	// The most at one time: GPUs that a pod had one after the other are not added up.
	found, err := s.queryWithin(ctx, gpuTimeout, fmt.Sprintf(`max_over_time(count by (cluster, instance, Hostname, namespace, pod, exported_namespace, exported_pod, modelName) (%s{GPU_I_PROFILE="",modelName!=""})[%s:1m])`, gpuSeries, milliseconds(r)), r)
	gpus, _ := found.(model.Vector)
	if err != nil || len(gpus) == 0 {
		return
	}
	shared, owners := sharedPods(list), ownersOf(gpus)
	for i := range list {
		t := &list[i]
		names, counts := owners.gpusOf(t)
		if len(names) != 1 {
			continue
		}
		t.GPU = names[0]
		if len(counts) == 1 && !slices.ContainsFunc(t.pods, func(p pod) bool { return shared[p] }) {
			t.GPUs = counts[0]
		}
	}
}

// owners are the pods and hosts that have GPUs, with the series of these.
type owners struct {
	pods  map[pod][]*model.Sample
	hosts map[host][]*model.Sample
}

// host is a host of a cluster.
type host struct{ cluster, name model.LabelValue }

// ownersOf returns the owners of the GPUs of a list. If an exporter's own labels replaced those of the pod that uses
// the GPU, Prometheus renames the latter to exported_pod.
func ownersOf(gpus model.Vector) owners {
	o := owners{map[pod][]*model.Sample{}, map[host][]*model.Sample{}}
	for _, one := range gpus {
		m := one.Metric
		own, exported := pod{m["cluster"], m["namespace"], m["pod"]}, pod{m["cluster"], m["exported_namespace"], m["exported_pod"]}
		o.pods[own] = append(o.pods[own], one)
		if exported != own {
			o.pods[exported] = append(o.pods[exported], one)
		}
		named, scraped := host{m["cluster"], m["Hostname"]}, host{m["cluster"], hostOf(m[model.InstanceLabel])}
		o.hosts[named] = append(o.hosts[named], one)
		if scraped != named {
			o.hosts[scraped] = append(o.hosts[scraped], one)
		}
	}
	return o
}

// gpusOf returns the names of the GPUs of a target, and how many each of its pods has, each once.
func (o *owners) gpusOf(t *Target) (names []string, counts []int) {
	if at := hostOf(t.Labels[model.InstanceLabel]); len(t.pods) == 0 && at != "" && !loopback(string(at)) {
		for _, one := range o.hosts[host{t.Labels["cluster"], at}] {
			names = append(names, string(one.Metric["modelName"]))
		}
	}
	for _, p := range t.pods {
		count := 0
		for _, one := range o.pods[p] {
			names = append(names, string(one.Metric["modelName"]))
			count = max(count, int(one.Value)) // of one exporter: another has the same GPUs
		}
		if count > 0 {
			counts = append(counts, count)
		}
	}
	slices.Sort(names)
	slices.Sort(counts)
	return slices.Compact(names), slices.Compact(counts)
}

// sharedPods returns the pods in which several servers of a list are, by the ports of one host: the series do not
// show which server uses which of the pod's GPUs.
func sharedPods(list []Target) map[pod]bool {
	type place struct {
		pod
		host model.LabelValue
	}
	first, shared := map[place]model.LabelValue{}, map[pod]bool{}
	for i := range list {
		instance := list[i].Labels[model.InstanceLabel]
		for _, p := range list[i].pods {
			at := place{p, hostOf(instance)}
			if other, ok := first[at]; ok && other != instance {
				shared[p] = true
			}
			first[at] = instance
		}
	}
	return shared
}

// loopback reports whether a host is each machine's own name for itself, as of a port that is forwarded.
func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// hostOf returns the host of an instance, "" for one without a port.
func hostOf(instance model.LabelValue) model.LabelValue {
	host, _, _ := net.SplitHostPort(string(instance))
	return model.LabelValue(host)
}
