// SPDX-License-Identifier: Apache-2.0

// Reads and changes MIG through go-nvml and go-nvlib. See ../README.md.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/NVIDIA/go-nvlib/pkg/nvlib/device"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

const mib = 1 << 20

type slice struct {
	UUID            string `json:"uuid"`
	Name            string `json:"name"`
	Profile         string `json:"profile"`
	GpuInstance     int    `json:"gpu_instance"`
	ComputeInstance int    `json:"compute_instance"`
	MemoryMiB       uint64 `json:"memory_mib"`
}

type profile struct {
	Name       string      `json:"name"`
	ID         uint32      `json:"id"`
	Instances  uint32      `json:"instances"`
	MemoryMiB  uint64      `json:"memory_mib"`
	Placements [][2]uint32 `json:"placements"`
}

type gpu struct {
	UUID      string    `json:"uuid"`
	Name      string    `json:"name"`
	MemoryMiB uint64    `json:"memory_mib"`
	PCI       string    `json:"pci"`
	Mig       *int      `json:"mig"`
	Profiles  []profile `json:"profiles"`
	// Names as go-nvlib computes them, those of partial compute instances included.
	Names  []string `json:"names"`
	Slices []slice  `json:"slices"`
}

type machine struct {
	Driver string `json:"driver"`
	Gpus   []gpu  `json:"gpus"`
}

type instance struct {
	GpuInstance     uint32 `json:"gpu_instance"`
	ComputeInstance uint32 `json:"compute_instance"`
}

// must ends the program if NVML refused.
func must[T any](value T, ret nvml.Return) T {
	check(ret)
	return value
}

func check(ret nvml.Return) {
	if ret != nvml.SUCCESS {
		panic(fmt.Sprintf("NVML: %v", ret))
	}
}

func try[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func profiles(dev device.Device) []profile {
	found := []profile{}
	for number := 0; ; number++ {
		info, ret := dev.GetGpuInstanceProfileInfoV(number).V2()
		if ret == nvml.ERROR_NOT_SUPPORTED {
			continue
		}
		if ret == nvml.ERROR_INVALID_ARGUMENT {
			return found
		}
		check(ret)
		plain := must(dev.GetGpuInstanceProfileInfo(number))
		places := [][2]uint32{}
		for _, place := range must(dev.GetGpuInstancePossiblePlacements(&plain)) {
			places = append(places, [2]uint32{place.Start, place.Size})
		}
		name := ""
		for _, char := range info.Name {
			if char == 0 {
				break
			}
			name += string(rune(char))
		}
		found = append(found, profile{name, info.Id, info.InstanceCount, info.MemorySizeMB, places})
	}
}

func readSlice(mig device.MigDevice) slice {
	return slice{
		UUID:            must(mig.GetUUID()),
		Name:            must(mig.GetName()),
		Profile:         try(mig.GetProfile()).String(),
		GpuInstance:     must(mig.GetGpuInstanceId()),
		ComputeInstance: must(mig.GetComputeInstanceId()),
		MemoryMiB:       must(mig.GetAttributes()).MemorySizeMB,
	}
}

func readGpu(dev device.Device) gpu {
	g := gpu{
		UUID:      must(dev.GetUUID()),
		Name:      must(dev.GetName()),
		MemoryMiB: must(dev.GetMemoryInfo()).Total / mib,
		PCI:       try(dev.GetPCIBusID()),
		Profiles:  []profile{},
		Names:     []string{},
		Slices:    []slice{},
	}
	if !try(dev.IsMigCapable()) {
		return g
	}
	mode, _, ret := dev.GetMigMode()
	check(ret)
	g.Mig = &mode
	g.Profiles = profiles(dev)
	for _, name := range try(dev.GetMigProfiles()) {
		g.Names = append(g.Names, name.String())
	}
	for _, mig := range try(dev.GetMigDevices()) {
		g.Slices = append(g.Slices, readSlice(mig))
	}
	return g
}

func read(lib nvml.Interface) machine {
	m := machine{Driver: must(lib.SystemGetDriverVersion()), Gpus: []gpu{}}
	for _, dev := range try(device.New(lib).GetDevices()) {
		m.Gpus = append(m.Gpus, readGpu(dev))
	}
	return m
}

func create(lib nvml.Interface, index, id, start, size int) instance {
	dev := must(lib.DeviceGetHandleByIndex(index))
	info := nvml.GpuInstanceProfileInfo{Id: uint32(id)}
	place := nvml.GpuInstancePlacement{Start: uint32(start), Size: uint32(size)}
	gi := must(dev.CreateGpuInstanceWithPlacement(&info, &place))
	var whole nvml.ComputeInstanceProfileInfo
	for number := 0; number < nvml.COMPUTE_INSTANCE_PROFILE_COUNT; number++ {
		info, ret := gi.GetComputeInstanceProfileInfo(number, 0)
		if ret == nvml.SUCCESS && info.SliceCount > whole.SliceCount {
			whole = info
		}
	}
	ci := must(gi.CreateComputeInstance(&whole))
	return instance{must(gi.GetInfo()).Id, must(ci.GetInfo()).Id}
}

func destroy(lib nvml.Interface, index, giID, ciID int) {
	gi := must(must(lib.DeviceGetHandleByIndex(index)).GetGpuInstanceById(giID))
	check(must(gi.GetComputeInstanceById(ciID)).Destroy())
	check(gi.Destroy())
}

func main() {
	lib := nvml.New()
	check(lib.Init())
	var n []int
	for _, text := range os.Args[2:] {
		n = append(n, try(strconv.Atoi(text)))
	}
	var answer any = struct{}{}
	switch os.Args[1] {
	case "read":
		answer = read(lib)
	case "create":
		answer = create(lib, n[0], n[1], n[2], n[3])
	case "destroy":
		destroy(lib, n[0], n[1], n[2])
	default:
		panic("no such command: " + os.Args[1])
	}
	check(lib.Shutdown())
	try(0, json.NewEncoder(os.Stdout).Encode(answer))
}
