package main

import (
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/codec/avro"
	"github.com/ferrymq/ferry/codec/cbor"
	"github.com/ferrymq/ferry/codec/msgpack/value"
	"github.com/ferrymq/ferry/codec/protobuf"
	"github.com/ferrymq/ferry/codec/registry"
)

// registryVariable has the URL of the schema registry. It may hold a password, so that no flag does.
const registryVariable = "FERRY_SCHEMA_REGISTRY"

// codecs read bodies for whoever looks at them: of formats that describe themselves, of Protobuf as it stands on the
// wire, and of Avro where there is a registry.
func (p process) codecs() ([]codec.Codec, error) {
	all := []codec.Codec{value.Reader, cbor.Codec, protobuf.Wire}
	url, found, err := variable(registryVariable, p.env)
	if err != nil || !found {
		return all, err
	}
	schemas, err := registry.New(registry.Options{URLs: []string{url}})
	if err != nil {
		return nil, usage(registryVariable+" is no registry: "+err.Error(), "write https://registry:8081 for example")
	}
	records, err := avro.New(schemas)
	if err != nil {
		return nil, err
	}
	return append(all, records), nil
}
