// module_numpy.cpp - see module_numpy.hpp. The only file that sees NumPy's headers.
#include "module_numpy.hpp"

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>

#include <algorithm>
#include <array>

namespace nb = nanobind;

namespace envpool::runtime {
namespace {

constexpr std::size_t kMostDims = 16;  // a field's 8, batch and agents, with room to spare

int number_of(ep_dtype dtype) {
  switch (dtype) {
    case EP_BOOL:
      return NPY_BOOL;
    case EP_UINT8:
      return NPY_UINT8;
    case EP_UINT16:
      return NPY_UINT16;
    case EP_UINT32:
      return NPY_UINT32;
    case EP_UINT64:
      return NPY_UINT64;
    case EP_INT8:
      return NPY_INT8;
    case EP_INT16:
      return NPY_INT16;
    case EP_INT32:
      return NPY_INT32;
    case EP_INT64:
      return NPY_INT64;
    case EP_FLOAT16:
      return NPY_FLOAT16;
    case EP_FLOAT32:
      return NPY_FLOAT32;
    default:
      return NPY_FLOAT64;
  }
}

}  // namespace

void import_numpy() {
  if (_import_array() < 0) nb::raise_python_error();
}

nb::object numpy_array(void* data, const std::vector<std::size_t>& shape, ep_dtype dtype,
                       nb::object owner) {
  std::array<npy_intp, kMostDims> dims;
  std::copy(shape.begin(), shape.end(), dims.begin());
  PyArray_Descr* descr = PyArray_DescrFromType(number_of(dtype));  // the next call takes it over
  PyObject* array = PyArray_NewFromDescr(&PyArray_Type, descr, static_cast<int>(shape.size()),
                                         dims.data(), nullptr, data, NPY_ARRAY_WRITEABLE, nullptr);
  if (!array) nb::raise_python_error();
  nb::object result = nb::steal(array);
  auto* as_array = reinterpret_cast<PyArrayObject*>(array);
  if (PyArray_SetBaseObject(as_array, owner.release().ptr()) < 0) nb::raise_python_error();
  return result;
}

}  // namespace envpool::runtime
