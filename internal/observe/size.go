package observe

import (
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sizeOf returns about how much memory an object takes, in bytes. As it is sent, it may have a tenth of that: a variable of a container
// takes five bytes to send and 40 to keep. What it shares with other objects counts as well.
func sizeOf(object client.Object) int { return memory(reflect.ValueOf(object)) }

// memory returns how much memory a value points to.
func memory(value reflect.Value) int {
	switch value.Kind() {
	case reflect.String:
		return value.Len()
	case reflect.Pointer, reflect.Interface:
		if value.IsNil() {
			return 0
		}
		return int(value.Elem().Type().Size()) + memory(value.Elem())
	case reflect.Struct:
		return memoryOfFields(value)
	case reflect.Slice:
		return memoryOfElements(value)
	case reflect.Map:
		all := 0
		for each := value.MapRange(); each.Next(); {
			all += 2*int(each.Key().Type().Size()+each.Value().Type().Size()) + memory(each.Key()) + memory(each.Value())
		}
		return all
	default:
		return 0
	}
}

func memoryOfFields(value reflect.Value) int {
	if value.Type() == reflect.TypeFor[time.Time]() {
		return 0 // it points to a time zone, of which there is one
	}
	all := 0
	for i := range value.NumField() {
		all += memory(value.Field(i))
	}
	return all
}

func memoryOfElements(value reflect.Value) int {
	all := value.Len() * int(value.Type().Elem().Size())
	if value.Type().Elem().Kind() == reflect.Uint8 {
		return all
	}
	for i := range value.Len() {
		all += memory(value.Index(i))
	}
	return all
}
