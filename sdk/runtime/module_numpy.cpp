// module_numpy.cpp - see module_numpy.hpp. The only file that sees NumPy's headers.
#include "module_numpy.hpp"

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>

#include <algorithm>
#include <array>
#include <utility>

namespace nb = nanobind;

namespace envpool::runtime {
namespace {

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

nb::object numpy_array(void* data, std::span<const std::size_t> shape, ep_dtype dtype,
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

std::optional<ArrayElements> elements_of(nb::handle given, ep_dtype dtype) {
  if (!PyArray_Check(given.ptr())) return std::nullopt;
  auto* array = reinterpret_cast<PyArrayObject*>(given.ptr());
  nb::object keeper = nb::borrow(given);
  const int number = number_of(dtype);
  // By number: long and long long are two types of the same 64 bits, and the rest takes care of it.
  if (PyArray_TYPE(array) != number || !PyArray_ISCARRAY_RO(array)) {
    PyArray_Descr* descr = PyArray_DescrFromType(number);
    if (!PyArray_CanCastTypeTo(PyArray_DESCR(array), descr, NPY_SAFE_CASTING)) {
      Py_DECREF(descr);
      return std::nullopt;
    }
    // Takes the descr over.
    PyObject* converted = PyArray_FromArray(array, descr, NPY_ARRAY_CARRAY_RO);
    if (!converted) nb::raise_python_error();
    keeper = nb::steal(converted);
    array = reinterpret_cast<PyArrayObject*>(converted);
  }
  return ArrayElements{PyArray_DATA(array),
                       {PyArray_DIMS(array), static_cast<std::size_t>(PyArray_NDIM(array))},
                       std::move(keeper)};
}

}  // namespace envpool::runtime
