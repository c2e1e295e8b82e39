package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Linux reports process times to user space in units of 1/100 s on every architecture that this program is built for.
const clockTicksPerSecond = 100

// process is what /proc says of a process.
type process struct {
	cpuSeconds float64
	rssBytes   int64
}

// readProcess answers zeros for pid 0, which means that nobody wants to know.
func readProcess(pid int) (process, error) {
	if pid == 0 {
		return process{}, nil
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, fmt.Errorf("the server process is gone: %w", err)
	}
	// The second field, the command, may hold spaces; what follows its last parenthesis does not.
	_, rest, found := strings.Cut(string(text[strings.LastIndexByte(string(text), ')'):]), ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 22 {
		return process{}, fmt.Errorf("/proc/%d/stat has an unknown form", pid)
	}
	var values [3]int64
	for i, field := range []int{11, 12, 21} { // utime, stime, rss in pages
		if values[i], err = strconv.ParseInt(fields[field], 10, 64); err != nil {
			return process{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
	}
	return process{
		cpuSeconds: float64(values[0]+values[1]) / clockTicksPerSecond,
		rssBytes:   values[2] * int64(os.Getpagesize()),
	}, nil
}
