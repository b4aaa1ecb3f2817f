// SPDX-License-Identifier: Apache-2.0

// Writes the descriptors of the kubelet's protocols to standard output, as a FileDescriptorSet.
package main

import (
	"log"
	"os"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

func main() {
	files := []protoreflect.FileDescriptor{
		deviceplugin.File_staging_src_k8s_io_kubelet_pkg_apis_deviceplugin_v1beta1_api_proto,
		podresources.File_staging_src_k8s_io_kubelet_pkg_apis_podresources_v1_api_proto,
	}
	set := &descriptorpb.FileDescriptorSet{}
	for _, file := range files {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(file))
	}
	bytes, err := proto.Marshal(set)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := os.Stdout.Write(bytes); err != nil {
		log.Fatal(err)
	}
}
