// transform.cpp - see transform.hpp. A frame passes through: colour (on every raw frame), maximum,
// resize, layout.
#include "transform.hpp"

#include <cstring>
#include <string>

#include "error.hpp"

namespace envpool::runtime {
namespace {

void check_range(const char* name, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (low <= value && value <= high) return;
  throw Error(ErrorKind::kValue, std::string(name) + "=" + std::to_string(value) +
                                     " is out of range [" + std::to_string(low) + ", " +
                                     std::to_string(high) + "]");
}

struct Size {
  int height, width, channels;
};

Size size_of(const Field& field) {
  const auto dim = [&](std::size_t i) { return static_cast<int>(field.shape[i]); };
  switch (field.layout) {
    case EP_HWC:
      return {dim(0), dim(1), dim(2)};
    case EP_CHW:
      return {dim(1), dim(2), dim(0)};
    default:
      return {dim(0), dim(1), 1};
  }
}

bool touches(const Field& field, const Transforms& t) {
  if (field.layout == EP_INDEXED) return true;  // users never get palette indices
  if (!t.image_setting()) return false;
  // Channels that are last already, and no other wish.
  return t.max_last_two || t.gray_scale || t.img_height || t.img_width || t.stack_num > 1 ||
         field.layout == EP_CHW;
}

Field finished_field(const Field& field, Size size, std::int64_t stack, bool channels_last) {
  Field result = field;
  result.kind = EP_BOX;
  result.low = {std::byte{0}};
  result.high = {std::byte{255}};
  result.palette.clear();
  result.gray.clear();
  if (size.channels == 1) {
    result.layout = EP_HW;
    result.shape = {size.height, size.width};
    if (stack > 1) result.shape.insert(result.shape.begin(), stack);
  } else if (channels_last) {
    result.layout = EP_HWC;
    result.shape = {size.height, size.width, size.channels};
    if (stack > 1) result.shape.insert(result.shape.begin(), stack);
  } else {
    result.layout = EP_CHW;
    result.shape = {stack * size.channels, size.height, size.width};
  }
  if (stack > 1) result.layout = channels_last && size.channels > 1 ? EP_PLAIN : EP_CHW;
  return result;
}

}  // namespace

void Transforms::check() const {
  check_range("frame_skip", frame_skip, 1, 1000);
  check_range("stack_num", stack_num, 1, 1000);
  check_range("img_height", img_height, 0, 16384);
  check_range("img_width", img_width, 0, 16384);
  check_range("noop_min", noop_min, 0, 1000000);
  check_range("noop_max", noop_max, 0, 1000000);
}

const char* Transforms::image_setting() const {
  if (max_last_two) return "max_last_two=True";
  if (gray_scale) return "gray_scale=True";
  if (img_height) return "img_height";
  if (img_width) return "img_width";
  if (stack_num > 1) return "stack_num";
  if (channels_last) return "channels_last=True";
  return nullptr;
}

std::optional<ImageTransform> ImageTransform::make(const Field& field,
                                                   const Transforms& transforms) {
  if (field.layout == EP_PLAIN || !touches(field, transforms)) return std::nullopt;
  return ImageTransform(field, transforms);
}

ImageTransform::ImageTransform(const Field& field, const Transforms& t)
    : stack_num_(static_cast<std::size_t>(t.stack_num)) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::kValue, "image field '" + field.name + "': " + what);
  };
  Size size = size_of(field);
  channels_in_ = size.channels;
  pixels_in_ = static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width);
  raw_bytes_ = pixels_in_ * static_cast<std::size_t>(channels_in_);
  planar_in_ = field.layout == EP_CHW && channels_in_ > 1;

  if (field.layout == EP_INDEXED) {
    colour_ = t.gray_scale ? Colour::kIndexToGray : Colour::kIndexToRgb;
    table_ = t.gray_scale ? field.gray : field.palette;
    channels_ = t.gray_scale ? 1 : 3;
  } else if (t.gray_scale && channels_in_ > 1) {
    if (channels_in_ != 3) {
      refuse("gray_scale=True needs 1 or 3 channels, it has " + std::to_string(channels_in_));
    }
    colour_ = Colour::kRgbToGray;
    channels_ = 1;
  } else {
    channels_ = channels_in_;
  }
  buffer_bytes_ = pixels_in_ * static_cast<std::size_t>(std::max(channels_, channels_in_));

  const int height = t.img_height ? static_cast<int>(t.img_height) : size.height;
  const int width = t.img_width ? static_cast<int>(t.img_width) : size.width;
  if (height != size.height || width != size.width) {
    if (channels_ > 4) {
      refuse("img_height/img_width need at most 4 channels, it has " + std::to_string(channels_));
    }
    resizer_.emplace(size.height, size.width, channels_, height, width, t.interpolation);
  }
  size = {height, width, channels_};
  pixels_out_ = static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  frame_bytes_ = pixels_out_ * static_cast<std::size_t>(channels_);
  planar_out_ = channels_ > 1 && !t.channels_last;
  buffer_bytes_ = std::max(buffer_bytes_, frame_bytes_);
  result_ = finished_field(field, size, t.stack_num, t.channels_last);
}

// Interleaved, in the final colours, still in the first size.
void ImageTransform::convert(const std::uint8_t* raw, std::uint8_t* converted,
                             std::uint8_t* scratch) const {
  switch (colour_) {
    case Colour::kIndexToGray:
      return lookup(raw, table_.data(), converted, pixels_in_);
    case Colour::kIndexToRgb:
      return lookup_rgb(raw, table_.data(), converted, pixels_in_);
    case Colour::kRgbToGray:
      if (planar_in_) {
        planar_to_interleaved(raw, scratch, pixels_in_, channels_in_);
        raw = scratch;
      }
      return gray_from_rgb(raw, converted, pixels_in_);
    case Colour::kKeep:
      if (planar_in_) return planar_to_interleaved(raw, converted, pixels_in_, channels_in_);
      std::memcpy(converted, raw, raw_bytes_);
  }
}

void ImageTransform::resize(const std::uint8_t* converted, std::uint8_t* out) const {
  if (resizer_) {
    resizer_->run(converted, out);
  } else {
    std::memcpy(out, converted, frame_bytes_);
  }
}

void ImageTransform::finish(const std::uint8_t* converted, std::uint8_t* finished,
                            std::uint8_t* scratch) const {
  if (!planar_out_) return resize(converted, finished);
  resize(converted, scratch);
  interleaved_to_planar(scratch, finished, pixels_out_, channels_);
}

void ImageTransform::run(const std::uint8_t* newest, const std::uint8_t* before,
                         std::uint8_t* finished, std::uint8_t* scratch) const {
  std::uint8_t* first = scratch;
  std::uint8_t* second = first + buffer_bytes_;
  std::uint8_t* spare = second + buffer_bytes_;
  if (before && colour_ == Colour::kIndexToGray) {
    lookup_max(newest, before, table_.data(), first, pixels_in_);
  } else {
    convert(newest, first, spare);
    if (before) {
      convert(before, second, spare);
      max_into(first, second, converted_bytes());
    }
  }
  finish(first, finished, spare);
}

}  // namespace envpool::runtime
