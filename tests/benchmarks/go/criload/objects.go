package main

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Sandboxes and containers are as large as a kubelet makes them: 8 labels and 8 annotations each, about 1 kB per list entry.

func podName(number int) string { return fmt.Sprintf("web-7d9f8b6c5d-%05d", number) }

func podUID(number int) string { return fmt.Sprintf("3b0c2f0e-6f8d-4b57-9a0e-%012d", number) }

func podLabels(number int, name string) map[string]string {
	return map[string]string{
		"io.kubernetes.pod.name":      name,
		"io.kubernetes.pod.namespace": fmt.Sprintf("team-%02d", number%20),
		"io.kubernetes.pod.uid":       podUID(number),
		"app.kubernetes.io/name":      "web",
		"app.kubernetes.io/instance":  fmt.Sprintf("web-%d", number%50),
		"pod-template-hash":           "7d9f8b6c5d",
		"tier":                        "frontend",
	}
}

func annotations(number int) map[string]string {
	return map[string]string{
		"io.kubernetes.container.hash":                     fmt.Sprintf("%08x", uint32(number)*2654435761),
		"io.kubernetes.container.restartCount":             "0",
		"io.kubernetes.container.terminationMessagePath":   "/dev/termination-log",
		"io.kubernetes.container.terminationMessagePolicy": "File",
		"io.kubernetes.pod.terminationGracePeriod":         "30",
		"io.kubernetes.container.ports":                    `[{"name":"http","containerPort":8080,"protocol":"TCP"}]`,
		"prometheus.io/scrape":                             "true",
		"prometheus.io/port":                               "8080",
	}
}

func sandboxConfig(number int, name string) *cri.PodSandboxConfig {
	return &cri.PodSandboxConfig{
		Metadata:     &cri.PodSandboxMetadata{Name: name, Uid: podUID(number), Namespace: fmt.Sprintf("team-%02d", number%20)},
		Hostname:     name,
		LogDirectory: "/var/log/pods/" + name,
		Labels:       podLabels(number, name),
		Annotations:  annotations(number),
		Linux: &cri.LinuxPodSandboxConfig{
			CgroupParent:    "/kubepods",
			SecurityContext: &cri.LinuxSandboxSecurityContext{NamespaceOptions: &cri.NamespaceOption{Pid: cri.NamespaceMode_CONTAINER}},
		},
	}
}

func containerConfig(number int, name, image, imageRef string) *cri.ContainerConfig {
	labels := podLabels(number, name)
	labels["io.kubernetes.container.name"] = "main"
	podDirectory := "/var/lib/kubelet/pods/" + podUID(number)
	return &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: "main"},
		Image:    &cri.ImageSpec{Image: imageRef, UserSpecifiedImage: image},
		Command:  []string{"/bin/server"},
		Args:     []string{"--port=8080"},
		Envs:     []*cri.KeyValue{{Key: "KUBERNETES_SERVICE_HOST", Value: []byte("10.96.0.1")}, {Key: "PORT", Value: []byte("8080")}},
		Mounts: []*cri.Mount{
			{ContainerPath: "/etc/hosts", HostPath: podDirectory + "/etc-hosts"},
			{ContainerPath: "/dev/termination-log", HostPath: podDirectory + "/containers/main/0"},
		},
		Labels:      labels,
		Annotations: annotations(number),
		LogPath:     "main/0.log",
		Linux:       &cri.LinuxContainerConfig{Resources: &cri.LinuxContainerResources{CpuShares: 102, MemoryLimitInBytes: 128 << 20}},
	}
}

// pull makes the image present and answers the reference that containers must name.
func (c client) pull() (string, error) {
	var reply cri.PullImageResponse
	if _, err := c.call("ImageService", "PullImage", &cri.PullImageRequest{Image: &cri.ImageSpec{Image: c.options.image}}, &reply); err != nil {
		return "", err
	}
	if reply.ImageRef == "" {
		return "", errors.New("PullImage answered no image_ref")
	}
	return reply.ImageRef, nil
}

// pod is a sandbox that this client made; it makes the container anew as often as asked.
type pod struct {
	client    client
	number    int
	name      string
	imageRef  string
	config    *cri.PodSandboxConfig
	sandbox   string
	container string
}

func (c client) runPod(number int, name, imageRef string) (*pod, error) {
	p := &pod{client: c, number: number, name: name, imageRef: imageRef, config: sandboxConfig(number, name)}
	var reply cri.RunPodSandboxResponse
	if _, err := c.runtime("RunPodSandbox", &cri.RunPodSandboxRequest{Config: p.config}, &reply); err != nil {
		return nil, err
	}
	p.sandbox = reply.PodSandboxId
	return p, nil
}

func (p *pod) create() error {
	var reply cri.CreateContainerResponse
	_, err := p.client.runtime("CreateContainer", &cri.CreateContainerRequest{
		PodSandboxId:  p.sandbox,
		Config:        containerConfig(p.number, p.name, p.client.options.image, p.imageRef),
		SandboxConfig: p.config,
	}, &reply)
	p.container = reply.ContainerId
	return err
}

func (p *pod) start() error {
	return p.client.do("StartContainer", &cri.StartContainerRequest{ContainerId: p.container})
}

func (p *pod) stop() error {
	return p.client.do("StopContainer", &cri.StopContainerRequest{ContainerId: p.container})
}

func (p *pod) remove() error {
	return p.client.do("RemoveContainer", &cri.RemoveContainerRequest{ContainerId: p.container})
}

func (p *pod) end() error {
	if err := p.client.do("StopPodSandbox", &cri.StopPodSandboxRequest{PodSandboxId: p.sandbox}); err != nil {
		return err
	}
	return p.client.do("RemovePodSandbox", &cri.RemovePodSandboxRequest{PodSandboxId: p.sandbox})
}

// live is a pod's whole life, from RunPodSandbox to RemovePodSandbox: seven calls.
func (c client) live(number int, name, imageRef string) (calls int, err error) {
	p, err := c.runPod(number, name, imageRef)
	if err != nil {
		return 0, err
	}
	for _, step := range []func() error{p.create, p.start, p.stop, p.remove, p.end} {
		if err := step(); err != nil {
			return 0, err
		}
	}
	return 7, nil
}

// populate makes running pairs number from..pairs-1, so that the server holds `pairs` of them if it held `from`.
func populate(o options, clients []client) (map[string]any, error) {
	if o.pairs <= o.from {
		return nil, fmt.Errorf("-pairs %d must be greater than -from %d", o.pairs, o.from)
	}
	before, err := readProcess(o.serverPID)
	if err != nil {
		return nil, err
	}
	imageRef, err := clients[0].pull()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	var next atomic.Int64
	next.Store(int64(o.from))
	var workers sync.WaitGroup
	failures := make(chan error, o.streams)
	for w := range o.streams {
		workers.Go(func() {
			c := clients[w%len(clients)]
			for {
				number := int(next.Add(1)) - 1
				if number >= o.pairs {
					return
				}
				p, err := c.runPod(number, podName(number), imageRef)
				if err == nil {
					err = p.create()
				}
				if err == nil {
					err = p.start()
				}
				if err != nil {
					failures <- err
					return
				}
			}
		})
	}
	workers.Wait()
	select {
	case err := <-failures:
		return nil, err
	default:
	}
	seconds := time.Since(start).Seconds()
	if _, err := clients[0].listed(o.pairs); err != nil {
		return nil, err
	}
	after, err := readProcess(o.serverPID)
	if err != nil {
		return nil, err
	}
	return map[string]any{"seconds": seconds, "rss_bytes_before": before.rssBytes, "rss_bytes": after.rssBytes}, nil
}

// listed lists all containers once, with decoding; it is an error if there are not `want` running ones.
func (c client) listed(want int) (*cri.ListContainersResponse, error) {
	var reply cri.ListContainersResponse
	if _, err := c.runtime("ListContainers", &cri.ListContainersRequest{}, &reply); err != nil {
		return nil, err
	}
	running := 0
	for _, container := range reply.Containers {
		if container.State == cri.ContainerState_CONTAINER_RUNNING {
			running++
		}
	}
	if running != want {
		return nil, fmt.Errorf("the server lists %d containers, %d of them running; %d running ones were expected (populate first, on a fresh server)",
			len(reply.Containers), running, want)
	}
	return &reply, nil
}
