// SPDX-License-Identifier: Apache-2.0

// Reads a folder of CDI specifications with the CDI project's own code, which container runtimes
// have, and prints as JSON which devices they can have, what is wrong, and the oldest version of the
// format that has all that the specifications use.
package main

import (
	"encoding/json"
	"log"
	"os"

	"tags.cncf.io/container-device-interface/pkg/cdi"
)

type said struct {
	Devices []string `json:"devices"`
	Errors  []string `json:"errors"`
	Needs   []string `json:"needs"`
}

func main() {
	cache, err := cdi.NewCache(cdi.WithSpecDirs(os.Args[1]), cdi.WithAutoRefresh(false))
	if err != nil {
		log.Fatal(err)
	}
	answer := said{Devices: []string{}, Errors: []string{}, Needs: []string{}}
	answer.Devices = append(answer.Devices, cache.ListDevices()...)
	for _, found := range cache.GetErrors() {
		for _, err := range found {
			answer.Errors = append(answer.Errors, err.Error())
		}
	}
	for _, vendor := range cache.ListVendors() {
		for _, spec := range cache.GetVendorSpecs(vendor) {
			version, err := cdi.MinimumRequiredVersion(spec.Spec)
			if err != nil {
				log.Fatal(err)
			}
			answer.Needs = append(answer.Needs, version)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		log.Fatal(err)
	}
}
