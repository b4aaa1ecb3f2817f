// SPDX-License-Identifier: Apache-2.0

// Holds every CDI specification in a folder against the CDI project's JSON schema, and prints as JSON
// what does not fit. A module of its own: 0.8.1 is the last version of theirs that has the schema.
package main

import (
	"encoding/json"
	"log"
	"os"
	"path/filepath"

	"tags.cncf.io/container-device-interface/schema"
)

func main() {
	files, err := filepath.Glob(filepath.Join(os.Args[1], "*.json"))
	if err != nil || len(files) == 0 {
		log.Fatalf("no specification in %s: %v", os.Args[1], err)
	}
	errors := []string{}
	for _, file := range files {
		if err := schema.BuiltinSchema().ValidateFile(file); err != nil {
			errors = append(errors, filepath.Base(file)+": "+err.Error())
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(errors); err != nil {
		log.Fatal(err)
	}
}
