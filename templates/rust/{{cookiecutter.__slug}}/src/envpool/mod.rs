//! A layer over the C ABI (abi.rs): implement `Env`, name it in `plugin!`, and the library is a plugin.
//!
//! Panics don't leave it: they end the call with `EP_E_BROKEN`, and the host makes the env anew. What the layer has no words
//! for (text, ragged fields, agents' names, batches) is still in abi.rs.
#![allow(dead_code)]

pub mod abi;

use abi::*;
use std::any::Any;
use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::{null, null_mut};
use std::slice;

// ---- what an env is ----------------------------------------------------------------------------

/// An environment. An episode runs from `reset` to a step that ends it; steps outside of one never come here.
pub trait Env: Sized + Send + 'static {
    /// Handles of the fields: what `describe` makes and the other members read and write by.
    type Fields;

    /// Letters, digits, "_", "-" and "."; ends in -v<number>.
    const ID: &'static str;
    const DOC: &'static str;
    /// `EP_FREE`, `EP_THREAD_BOUND` or `EP_ONE_PER_PROCESS`.
    const SHARING: ep_sharing = EP_ONE_PER_PROCESS;
    /// Width and height of what `draw` draws; None: it draws nothing.
    const PICTURE: Option<(u32, u32)> = None;
    /// Goes up when `state` visits other members; None: states can't be saved.
    const STATE_VERSION: Option<u32> = None;

    fn options() -> Vec<Opt> {
        Vec::new()
    }
    /// Tells the fields; the same options tell the same.
    fn describe(spec: &mut Spec, options: &Values) -> Self::Fields;
    fn new(options: &Values, fields: Self::Fields) -> Result<Self, Error>;
    /// Comes before `reset` when there is a seed; the first reset always has one.
    fn seed(&mut self, seed: u64);
    /// Begins an episode. `options` are those that are `at_reset`.
    fn reset(&mut self, options: &Values) -> Result<(), Error>;
    fn step(&mut self, input: &Input, result: &mut StepResult) -> Result<(), Error>;
    /// Writes every element of every wanted field.
    fn observe(&self, view: &mut View);
    /// Draws rows of red, green and blue bytes, the top one first, `row_bytes` apart.
    fn draw(&self, _pixels: &mut [u8], _row_bytes: usize) {}
    /// Visits all that a step depends on, in an order that never changes.
    fn state(&mut self, _archive: &mut Archive) {}
}

/// Why a call failed: a status (`EP_E_...`) and a text for the user.
#[derive(Debug)]
pub struct Error {
    pub status: ep_status,
    pub text: String,
}
impl From<&str> for Error {
    fn from(text: &str) -> Error {
        Error { status: EP_E_FAILED, text: text.into() }
    }
}
fn error(status: ep_status, text: &str) -> Error {
    Error { status, text: text.into() }
}

/// Makes this library a plugin: `plugin!("name", "1.0.0", MyEnv, AnotherEnv);`
#[macro_export]
macro_rules! plugin {
    ($name:expr, $version:expr, $($env:ty),+) => {
        #[no_mangle]
        pub extern "C" fn envpool_plugin_v1(
            _host: *const $crate::envpool::abi::ep_host,
        ) -> *const $crate::envpool::abi::ep_plugin {
            static ONCE: std::sync::Once = std::sync::Once::new();
            static MADE: std::sync::atomic::AtomicPtr<$crate::envpool::abi::ep_plugin> =
                std::sync::atomic::AtomicPtr::new(std::ptr::null_mut());
            // call_once orders the store before every return from it, so relaxed accesses suffice.
            ONCE.call_once(|| {
                let tasks = vec![$($crate::envpool::task::<$env>()),+];
                let made = $crate::envpool::plugin($name, $version, tasks);
                MADE.store(made, std::sync::atomic::Ordering::Relaxed);
            });
            MADE.load(std::sync::atomic::Ordering::Relaxed)
        }
    };
}

// ---- options -----------------------------------------------------------------------------------

enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(CString),
}
impl Value {
    fn immortal(self) -> ep_value {
        let mut raw =
            ep_value { r#type: 0, dtype: 0, i: 0, f: 0.0, s: null(), data: null(), count: 0 };
        match self {
            Value::Bool(value) => (raw.r#type, raw.i) = (EP_T_BOOL, value.into()),
            Value::Int(value) => (raw.r#type, raw.i) = (EP_T_INT, value),
            Value::Float(value) => (raw.r#type, raw.f) = (EP_T_FLOAT, value),
            Value::Text(value) => (raw.r#type, raw.s) = (EP_T_STRING, value.into_raw()),
        }
        raw
    }
}

/// An option: `Opt::float("speed", 0.5).range(0.0, 1.0).doc("...")`.
pub struct Opt {
    name: CString,
    doc: CString,
    default: Value,
    range: Option<(Value, Value)>,
    choices: Vec<Value>,
    flags: u32,
}
impl Opt {
    fn new(name: &str, default: Value) -> Opt {
        let (name, doc) = (c_text(name), c_text(""));
        Opt { name, doc, default, range: None, choices: Vec::new(), flags: 0 }
    }
    pub fn float(name: &str, default: f64) -> Opt {
        Opt::new(name, Value::Float(default))
    }
    pub fn int(name: &str, default: i64) -> Opt {
        Opt::new(name, Value::Int(default))
    }
    pub fn bool(name: &str, default: bool) -> Opt {
        Opt::new(name, Value::Bool(default))
    }
    pub fn text(name: &str, default: &str) -> Opt {
        Opt::new(name, Value::Text(c_text(default)))
    }
    pub fn doc(mut self, line: &str) -> Opt {
        self.doc = c_text(line);
        self
    }
    /// Inclusive, of an int or a float.
    pub fn range(mut self, min: f64, max: f64) -> Opt {
        self.range = Some(match self.default {
            Value::Int(_) => (Value::Int(min as i64), Value::Int(max as i64)),
            _ => (Value::Float(min), Value::Float(max)),
        });
        self
    }
    /// Of a text.
    pub fn choices(mut self, texts: &[&str]) -> Opt {
        self.choices = texts.iter().map(|text| Value::Text(c_text(text))).collect();
        self
    }
    /// May be given anew at each reset.
    pub fn at_reset(mut self) -> Opt {
        self.flags |= EP_OPTION_AT_RESET;
        self
    }
    /// The described spec depends on it.
    pub fn shapes_spec(mut self) -> Opt {
        self.flags |= EP_OPTION_SHAPES_SPEC;
        self
    }

    fn immortal(self) -> *const ep_option {
        let choices: Vec<ep_value> = self.choices.into_iter().map(Value::immortal).collect();
        let choices = Box::leak(choices.into_boxed_slice());
        let (min, max) = match self.range {
            Some((min, max)) => (leaked(min.immortal()), leaked(max.immortal())),
            None => (null(), null()),
        };
        leaked(ep_option {
            size: size_of::<ep_option>(),
            flags: self.flags,
            name: self.name.into_raw(),
            doc: or_null(self.doc.to_bytes().is_empty(), self.doc.into_raw()),
            unit: null(),
            def: self.default.immortal(),
            min,
            max,
            choices: or_null(choices.is_empty(), choices.as_ptr()),
            choice_count: choices.len() as u32,
            reserved: 0,
        })
    }
}

/// The values of options, by name. An unknown name is an error of the plugin: it panics.
pub struct Values<'a> {
    names: Vec<CString>,
    values: &'a [ep_value],
}
impl<'a> Values<'a> {
    /// # Safety
    /// `values` holds `count` values: one for each option of E that has these flags, in order.
    unsafe fn of<E: Env>(flags: u32, values: *const ep_value, count: u32) -> Result<Self, Error> {
        let chosen = E::options().into_iter().filter(|option| option.flags & flags == flags);
        let names: Vec<_> = chosen.map(|option| option.name).collect();
        let values = match count {
            0 => &[][..],
            _ => slice::from_raw_parts(values, count as usize),
        };
        if names.len() != values.len() {
            return Err(error(EP_E_ARGUMENT, "a wrong number of option values"));
        }
        Ok(Values { names, values })
    }
    fn get(&self, name: &str) -> &ep_value {
        let place = self.names.iter().position(|known| known.to_bytes() == name.as_bytes());
        &self.values[place.unwrap_or_else(|| panic!("there is no option {name}"))]
    }
    pub fn float(&self, name: &str) -> f64 {
        self.get(name).f
    }
    pub fn int(&self, name: &str) -> i64 {
        self.get(name).i
    }
    pub fn bool(&self, name: &str) -> bool {
        self.get(name).i != 0
    }
    pub fn text(&self, name: &str) -> String {
        // A text's `s` is never NULL; the others' may be.
        let s = self.get(name).s;
        if s.is_null() {
            return String::new();
        }
        unsafe { CStr::from_ptr(s) }.to_string_lossy().into_owned()
    }
}

// ---- fields ------------------------------------------------------------------------------------

/// What a field may consist of: numbers for which any bytes are a value.
pub trait Element: Copy + PartialOrd + 'static {
    const DTYPE: ep_dtype;
    fn write(self, out: &mut Vec<u8>);
    fn read(from: &mut &[u8]) -> Self;
}
macro_rules! elements {
    ($($name:ty = $dtype:expr),+) => {
        $(impl Element for $name {
            const DTYPE: ep_dtype = $dtype;
            fn write(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn read(from: &mut &[u8]) -> Self {
                let (own, rest) = from.split_at(std::mem::size_of::<Self>());
                *from = rest;
                Self::from_le_bytes(own.try_into().unwrap())
            }
        })+
    };
}
elements!(
    u8 = EP_UINT8,
    u16 = EP_UINT16,
    u32 = EP_UINT32,
    u64 = EP_UINT64,
    i8 = EP_INT8,
    i16 = EP_INT16,
    i32 = EP_INT32,
    i64 = EP_INT64,
    f32 = EP_FLOAT32,
    f64 = EP_FLOAT64
);

/// The handle of a field.
pub struct Field<T> {
    role: ep_role,
    index: usize,
    count: usize, // elements, of one agent
    per_agent: bool,
    element: PhantomData<T>,
}

struct Record {
    name: CString,
    doc: CString,
    shape: Vec<i64>,
    bounds: Option<(Vec<u8>, Vec<u8>)>,
    n: Vec<i64>,
    labels: Vec<CString>,
    role: ep_role,
    kind: ep_kind,
    dtype: ep_dtype,
    layout: ep_layout,
    flags: u32,
}

/// What `describe` fills: fields in order, and what the whole task is like.
pub struct Spec {
    pub max_agents: u32,
    /// 0: no limit.
    pub max_episode_steps: i64,
    /// NaN: none.
    pub reward_threshold: f64,
    pub fps: f64,
    records: Vec<Record>,
}

/// What can be said of a field, chained; `add` ends it.
pub struct FieldBuilder<'a, T> {
    spec: &'a mut Spec,
    record: Record,
    element: PhantomData<T>,
}

impl Spec {
    fn new() -> Spec {
        Spec {
            max_agents: 1,
            max_episode_steps: 0,
            reward_threshold: f64::NAN,
            fps: 0.0,
            records: Vec::new(),
        }
    }
    /// "" is the whole observation, "a/b" nests; an empty shape is a scalar.
    pub fn obs<T: Element>(&mut self, name: &str, shape: &[i64]) -> FieldBuilder<'_, T> {
        self.field(EP_OBS, name, shape)
    }
    pub fn action<T: Element>(&mut self, name: &str, shape: &[i64]) -> FieldBuilder<'_, T> {
        self.field(EP_ACTION, name, shape)
    }
    pub fn info<T: Element>(&mut self, name: &str, shape: &[i64]) -> FieldBuilder<'_, T> {
        self.field(EP_INFO, name, shape)
    }
    /// State of the whole game, never one agent's.
    pub fn global<T: Element>(&mut self, name: &str, shape: &[i64]) -> FieldBuilder<'_, T> {
        self.field(EP_GLOBAL, name, shape)
    }
    fn field<T: Element>(
        &mut self,
        role: ep_role,
        name: &str,
        shape: &[i64],
    ) -> FieldBuilder<'_, T> {
        let record = Record {
            name: c_text(name),
            doc: c_text(""),
            shape: shape.to_vec(),
            bounds: None,
            n: Vec::new(),
            labels: Vec::new(),
            role,
            kind: EP_BOX,
            dtype: T::DTYPE,
            layout: EP_PLAIN,
            flags: 0,
        };
        FieldBuilder { spec: self, record, element: PhantomData }
    }

    /// # Safety
    /// `to` is a host's spec.
    unsafe fn emit(&self, to: *mut ep_spec) -> ep_status {
        (*to).max_agents = self.max_agents;
        (*to).max_episode_steps = self.max_episode_steps;
        (*to).reward_threshold = self.reward_threshold;
        (*to).fps = self.fps;
        for record in &self.records {
            let labels: Vec<*const c_char> =
                record.labels.iter().map(|label| label.as_ptr()).collect();
            let bound = |bytes: &Vec<u8>| bytes.as_ptr() as *const c_void;
            let field = ep_field {
                size: size_of::<ep_field>(),
                role: record.role,
                kind: record.kind,
                dtype: record.dtype,
                name: record.name.as_ptr(),
                doc: or_null(record.doc.to_bytes().is_empty(), record.doc.as_ptr()),
                unit: null(),
                shape: or_null(record.shape.is_empty(), record.shape.as_ptr()),
                low: record.bounds.as_ref().map_or(null(), |(low, _)| bound(low)),
                high: record.bounds.as_ref().map_or(null(), |(_, high)| bound(high)),
                n: or_null(record.n.is_empty(), record.n.as_ptr()),
                start: null(),
                rank: record.shape.len() as u32,
                bound_count: record.n.len().max(record.bounds.is_some().into()) as u32,
                flags: record.flags,
                group: 0,
                layout: record.layout,
                reserved: 0,
                meaning: null(),
                labels: or_null(labels.is_empty(), labels.as_ptr()),
                palette: null(),
                gray: null(),
            };
            let status = ((*to).add)(to, &field);
            if status != EP_OK {
                return status;
            }
        }
        EP_OK
    }
}

impl<T: Element> FieldBuilder<'_, T> {
    pub fn doc(mut self, line: &str) -> Self {
        self.record.doc = c_text(line);
        self
    }
    /// Inclusive bounds of all elements.
    pub fn within(mut self, low: T, high: T) -> Self {
        let bytes = |value: T| {
            let mut out = Vec::new();
            value.write(&mut out);
            out
        };
        self.record.bounds = Some((bytes(low), bytes(high)));
        self
    }
    /// Integers 0 .. n - 1: one n for all elements, or one each.
    pub fn discrete(mut self, n: &[i64]) -> Self {
        self.record.kind = EP_DISCRETE;
        self.record.n = n.to_vec();
        self
    }
    /// Names of the values of a discrete field.
    pub fn labels(mut self, names: &[&str]) -> Self {
        self.record.labels = names.iter().map(|name| c_text(name)).collect();
        self
    }
    /// 0 or 1 in each element, of u8 or i8.
    pub fn multi_binary(mut self) -> Self {
        self.record.kind = EP_MULTI_BINARY;
        self
    }
    /// `EP_HW`, `EP_HWC` or `EP_CHW`.
    pub fn image(mut self, layout: ep_layout) -> Self {
        self.record.layout = layout;
        self
    }
    pub fn per_agent(mut self) -> Self {
        self.record.flags |= EP_FIELD_PER_AGENT;
        self
    }
    pub fn add(self) -> Field<T> {
        let record = self.record;
        let field = Field {
            role: record.role,
            index: self.spec.records.iter().filter(|other| other.role == record.role).count(),
            count: record.shape.iter().product::<i64>() as usize,
            per_agent: record.flags & EP_FIELD_PER_AGENT != 0,
            element: PhantomData,
        };
        self.spec.records.push(record);
        field
    }
}

// ---- stepping ----------------------------------------------------------------------------------

/// The action.
pub struct Input<'a> {
    raw: &'a ep_input,
}
impl Input<'_> {
    /// The elements of a field, of this agent if it is `per_agent`.
    pub fn get<T: Element>(&self, field: &Field<T>, agent: usize) -> &[T] {
        assert!(field.role == EP_ACTION && agent < self.raw.agents as usize);
        // The host hands in all fields that describe() told, whole and aligned, and handles come from there.
        unsafe {
            let data = *self.raw.action.add(field.index) as *const T;
            let from = if field.per_agent { agent * field.count } else { 0 };
            slice::from_raw_parts(data.add(from), field.count)
        }
    }
}

/// Where `observe` writes.
pub struct View<'a> {
    raw: &'a ep_view,
}
impl View<'_> {
    /// The elements of a field, of this agent if it is `per_agent`; None: not wanted.
    pub fn get<T: Element>(&mut self, field: &Field<T>, agent: usize) -> Option<&mut [T]> {
        assert!(agent < self.raw.agents as usize);
        let all = match field.role {
            EP_OBS => self.raw.obs,
            EP_INFO => self.raw.info,
            _ => self.raw.global,
        };
        // As in Input. Borrowed from self, so that no two slices overlap.
        unsafe {
            let data = if all.is_null() { null_mut() } else { *all.add(field.index) as *mut T };
            let from = if field.per_agent { agent * field.count } else { 0 };
            (!data.is_null()).then(|| slice::from_raw_parts_mut(data.add(from), field.count))
        }
    }
    /// Writes all elements of a field, if it is wanted.
    pub fn put<T: Element>(&mut self, field: &Field<T>, agent: usize, values: &[T]) {
        if let Some(to) = self.get(field, agent) {
            to.copy_from_slice(values);
        }
    }
}

/// The outcome of a step, an entry for each agent: 0 at first. With one agent its flags end the episode.
pub struct StepResult<'a> {
    pub reward: &'a mut [f64],
    /// 1: the task's own end.
    pub terminated: &'a mut [u8],
    /// 1: cut short for the env's own reasons.
    pub truncated: &'a mut [u8],
    raw: &'a ep_result,
}
impl StepResult<'_> {
    /// Whether an agent takes part at present; unsaid: it does.
    pub fn alive(&mut self, agent: usize, yes: bool) {
        assert!(agent < self.reward.len());
        if !self.raw.alive.is_null() {
            unsafe { *self.raw.alive.add(agent) = yes.into() }
        }
    }
    /// Ends the episode of several agents.
    pub fn end_episode(&mut self, yes: bool) {
        if !self.raw.episode_over.is_null() {
            unsafe { *self.raw.episode_over = yes.into() }
        }
    }
}

/// What `state` shows its members to: they are written or read.
pub struct Archive<'a> {
    written: Vec<u8>,
    from: Option<&'a [u8]>,
}
impl Archive<'_> {
    pub fn visit<T: Element>(&mut self, value: &mut T) {
        match &mut self.from {
            None => value.write(&mut self.written),
            Some(from) => *value = T::read(from),
        }
    }
}

// ---- glue: from an Env to an ep_task -----------------------------------------------------------

/// An env as the host holds it.
struct Slot<E> {
    host: *const ep_host,
    running: bool, // between a reset and the end of its episode
    env: E,
}

fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "?")).unwrap()
}
fn immortal(text: &str) -> *const c_char {
    c_text(text).into_raw()
}
fn leaked<T>(value: T) -> *const T {
    Box::leak(Box::new(value))
}
fn or_null<T>(none: bool, pointer: *const T) -> *const T {
    if none {
        null()
    } else {
        pointer
    }
}
const fn size_of<T>() -> u32 {
    std::mem::size_of::<T>() as u32
}

/// Runs a call; an error or a panic becomes a status that is explained.
fn call(host: *const ep_host, run: impl FnOnce() -> Result<(), Error>) -> ep_status {
    let failure = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => return EP_OK,
        Ok(Err(error)) => error,
        Err(panic) => error(EP_E_BROKEN, &panic_text(&*panic)),
    };
    unsafe { ((*host).explain)(host, c_text(&failure.text).as_ptr()) };
    failure.status
}
fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".into())
}
/// # Safety
/// `env` came from create::<E>, and no other call uses it.
unsafe fn on<E: Env>(
    env: *mut c_void,
    run: impl FnOnce(&mut Slot<E>) -> Result<(), Error>,
) -> ep_status {
    let slot = &mut *(env as *mut Slot<E>);
    call(slot.host, || run(slot))
}

unsafe extern "C" fn describe<E: Env>(
    host: *const ep_host,
    info: *const ep_create,
    to: *mut ep_spec,
) -> ep_status {
    let mut refused = EP_OK; // already explained
    let status = call(host, || {
        let values = Values::of::<E>(0, (*info).options, (*info).option_count)?;
        let mut spec = Spec::new();
        E::describe(&mut spec, &values);
        refused = spec.emit(to);
        Ok(())
    });
    if status != EP_OK {
        status
    } else {
        refused
    }
}

unsafe extern "C" fn create<E: Env>(
    host: *const ep_host,
    info: *const ep_create,
    made: *mut *mut c_void,
) -> ep_status {
    call(host, || {
        let values = Values::of::<E>(0, (*info).options, (*info).option_count)?;
        let fields = E::describe(&mut Spec::new(), &values);
        let slot = Slot { host, running: false, env: E::new(&values, fields)? };
        *made = Box::into_raw(Box::new(slot)) as *mut c_void;
        Ok(())
    })
}

unsafe extern "C" fn reset<E: Env>(env: *mut c_void, how: *const ep_reset) -> ep_status {
    on::<E>(env, |slot| {
        slot.running = false;
        let how = &*how;
        if how.has_seed != 0 {
            slot.env.seed(how.seed);
        }
        slot.env.reset(&Values::of::<E>(EP_OPTION_AT_RESET, how.options, how.option_count)?)?;
        slot.running = true;
        Ok(())
    })
}

unsafe extern "C" fn step<E: Env>(
    env: *mut c_void,
    input: *const ep_input,
    out: *const ep_result,
) -> ep_status {
    on::<E>(env, |slot| {
        if !slot.running {
            return Err(error(EP_E_STATE, "step() without a running episode: reset() comes first"));
        }
        slot.running = false; // stays so if step() fails
        let raw = &*out;
        let agents = raw.agents as usize;
        let mut result = StepResult {
            reward: slice::from_raw_parts_mut(raw.reward, agents),
            terminated: slice::from_raw_parts_mut(raw.terminated, agents),
            truncated: slice::from_raw_parts_mut(raw.truncated, agents),
            raw,
        };
        slot.env.step(&Input { raw: &*input }, &mut result)?;
        let over = match raw.episode_over.is_null() {
            true => result.terminated[0] | result.truncated[0],
            false => *raw.episode_over,
        };
        slot.running = over == 0;
        Ok(())
    })
}

unsafe extern "C" fn observe<E: Env>(env: *mut c_void, out: *const ep_view) -> ep_status {
    on::<E>(env, |slot| {
        slot.env.observe(&mut View { raw: &*out });
        Ok(())
    })
}

unsafe extern "C" fn destroy<E: Env>(env: *mut c_void) {
    let slot = Box::from_raw(env as *mut Slot<E>);
    call(slot.host, || {
        drop(slot);
        Ok(())
    });
}

unsafe extern "C" fn measure<E: Env>(env: *mut c_void, image: *mut ep_image) -> ep_status {
    on::<E>(env, |_| {
        let (width, height) = E::PICTURE.unwrap_or((0, 0));
        let image = &mut *image;
        if image.width == 0 {
            image.width = width;
        }
        if image.height == 0 {
            image.height = height;
        }
        if image.format != EP_RGB8
            || image.camera != 0
            || (image.width, image.height) != (width, height)
        {
            let text = format!("one camera draws RGB at {width} x {height}");
            return Err(error(EP_E_ARGUMENT, &text));
        }
        Ok(())
    })
}

unsafe extern "C" fn draw<E: Env>(env: *mut c_void, image: *const ep_image) -> ep_status {
    on::<E>(env, |slot| {
        let image = &*image;
        let bytes =
            (image.height as usize - 1) * image.row_bytes as usize + 3 * image.width as usize;
        let pixels = slice::from_raw_parts_mut(image.pixels as *mut u8, bytes);
        slot.env.draw(pixels, image.row_bytes as usize);
        Ok(())
    })
}

/// A state's bytes: u32 version, u32 1 if an episode is running, then what E visits.
fn saved<E: Env>(slot: &mut Slot<E>) -> Vec<u8> {
    let mut archive = Archive { written: Vec::new(), from: None };
    archive.visit(&mut E::STATE_VERSION.unwrap_or(0));
    archive.visit(&mut u32::from(slot.running));
    slot.env.state(&mut archive);
    archive.written
}

unsafe extern "C" fn save<E: Env>(
    env: *mut c_void,
    _purpose: i32,
    writer: *const ep_writer,
) -> ep_status {
    let mut written = EP_OK;
    let made = on::<E>(env, |slot| {
        let bytes = saved(slot);
        written = ((*writer).write)(writer, bytes.as_ptr() as *const c_void, bytes.len() as u64);
        Ok(())
    });
    if made != EP_OK {
        made
    } else {
        written
    }
}

unsafe extern "C" fn load<E: Env>(
    env: *mut c_void,
    _purpose: i32,
    data: *const c_void,
    bytes: u64,
) -> ep_status {
    on::<E>(env, |slot| {
        // Members don't depend on values, so a state of this kind is as long as that of any env.
        let refused = error(EP_E_ARGUMENT, "a state of another kind or version");
        if bytes as usize != saved(slot).len() {
            return Err(refused);
        }
        let mut from = slice::from_raw_parts(data as *const u8, bytes as usize);
        let (version, running) = (u32::read(&mut from), u32::read(&mut from));
        if Some(version) != E::STATE_VERSION || running > 1 {
            return Err(refused);
        }
        slot.env.state(&mut Archive { written: Vec::new(), from: Some(from) });
        slot.running = running == 1;
        Ok(())
    })
}

/// The extensions of E, each immortal.
struct Extensions<E>(PhantomData<E>);
impl<E: Env> Extensions<E> {
    const RENDER: ep_render = ep_render {
        size: size_of::<ep_render>(),
        formats: 1 << EP_RGB8,
        measure: measure::<E>,
        draw: draw::<E>,
    };
    const STATE: ep_state = ep_state {
        size: size_of::<ep_state>(),
        purposes: 1 << EP_STATE_CLONE | 1 << EP_STATE_PERSIST,
        save: save::<E>,
        load: load::<E>,
    };
}

unsafe extern "C" fn extension<E: Env>(id: *const c_char) -> *const c_void {
    let id = CStr::from_ptr(id).to_bytes();
    if id == EP_EXT_RENDER.as_bytes() && E::PICTURE.is_some() {
        return &Extensions::<E>::RENDER as *const ep_render as *const c_void;
    }
    if id == EP_EXT_STATE.as_bytes() && E::STATE_VERSION.is_some() {
        return &Extensions::<E>::STATE as *const ep_state as *const c_void;
    }
    null()
}

/// The task of E, immortal.
pub fn task<E: Env>() -> *const ep_task {
    let options: Vec<_> = E::options().into_iter().map(Opt::immortal).collect();
    leaked(ep_task {
        size: size_of::<ep_task>(),
        sharing: E::SHARING,
        flags: 0,
        id: immortal(E::ID),
        doc: immortal(E::DOC),
        option_count: options.len() as u32,
        options: Box::leak(options.into_boxed_slice()).as_ptr(),
        reserved: 0,
        describe: describe::<E>,
        create: create::<E>,
        reset: reset::<E>,
        step: step::<E>,
        observe: observe::<E>,
        destroy: destroy::<E>,
        extension: Some(extension::<E>),
    })
}

/// The plugin of these tasks, immortal.
pub fn plugin(name: &str, version: &str, tasks: Vec<*const ep_task>) -> *mut ep_plugin {
    Box::into_raw(Box::new(ep_plugin {
        size: size_of::<ep_plugin>(),
        abi_major: EP_ABI_MAJOR,
        abi_minor: EP_ABI_MINOR,
        host_minor: 0,
        reserved: 0,
        task_count: tasks.len() as u32,
        tasks: Box::leak(tasks.into_boxed_slice()).as_ptr(),
        name: immortal(name),
        version: immortal(version),
        license: null(),
        url: null(),
    }))
}
