//! The C ABI of envpool, as sdk/include/envpool/env.h and ext/*.h state it: the same names, the same layout. The contract
//! of each member stands there. envpool-sdk's own tests hold every offset and value below to those headers.
#![allow(non_camel_case_types, dead_code)]

use std::os::raw::{c_char, c_void};

pub const EP_ABI_MAJOR: u16 = 1;
pub const EP_ABI_MINOR: u16 = 0;

// ---- status, kinds, flags ----------------------------------------------------------------------

pub type ep_status = i32;
pub const EP_OK: ep_status = 0;
pub const EP_E_FAILED: ep_status = -1;
pub const EP_E_ARGUMENT: ep_status = -2;
pub const EP_E_UNSUPPORTED: ep_status = -3;
pub const EP_E_STATE: ep_status = -4;
pub const EP_E_NOMEM: ep_status = -5;
pub const EP_E_NOT_FOUND: ep_status = -6;
pub const EP_E_CANCELLED: ep_status = -7;
pub const EP_E_BROKEN: ep_status = -8;

pub type ep_dtype = i32;
pub const EP_BOOL: ep_dtype = 108;
pub const EP_UINT8: ep_dtype = 208;
pub const EP_UINT16: ep_dtype = 216;
pub const EP_UINT32: ep_dtype = 232;
pub const EP_UINT64: ep_dtype = 264;
pub const EP_INT8: ep_dtype = 308;
pub const EP_INT16: ep_dtype = 316;
pub const EP_INT32: ep_dtype = 332;
pub const EP_INT64: ep_dtype = 364;
pub const EP_FLOAT16: ep_dtype = 416;
pub const EP_FLOAT32: ep_dtype = 432;
pub const EP_FLOAT64: ep_dtype = 464;

pub type ep_role = i32;
pub const EP_OBS: ep_role = 1;
pub const EP_ACTION: ep_role = 2;
pub const EP_INFO: ep_role = 3;
pub const EP_GLOBAL: ep_role = 4;

pub type ep_layout = i32;
pub const EP_PLAIN: ep_layout = 0;
pub const EP_HW: ep_layout = 1;
pub const EP_HWC: ep_layout = 2;
pub const EP_CHW: ep_layout = 3;
pub const EP_INDEXED: ep_layout = 4;

pub type ep_kind = i32;
pub const EP_BOX: ep_kind = 1;
pub const EP_DISCRETE: ep_kind = 2;
pub const EP_MULTI_BINARY: ep_kind = 3;
pub const EP_TEXT: ep_kind = 4;

pub const EP_FIELD_PER_AGENT: u32 = 1 << 0;
pub const EP_FIELD_RAGGED: u32 = 1 << 1;
pub const EP_FIELD_VOLATILE: u32 = 1 << 16;

pub type ep_type = i32;
pub const EP_T_BOOL: ep_type = 1;
pub const EP_T_INT: ep_type = 2;
pub const EP_T_FLOAT: ep_type = 3;
pub const EP_T_STRING: ep_type = 4;
pub const EP_T_PATH: ep_type = 5;
pub const EP_T_ARRAY: ep_type = 6;
pub const EP_T_JSON: ep_type = 7;

pub const EP_OPTION_REQUIRED: u32 = 1 << 0;
pub const EP_OPTION_AT_RESET: u32 = 1 << 1;
pub const EP_OPTION_SHAPES_SPEC: u32 = 1 << 2;

pub const EP_LOG_DEBUG: i32 = 10;
pub const EP_LOG_INFO: i32 = 20;
pub const EP_LOG_WARN: i32 = 30;
pub const EP_LOG_ERROR: i32 = 40;

pub type ep_sharing = i32;
pub const EP_ONE_PER_PROCESS: ep_sharing = 0;
pub const EP_THREAD_BOUND: ep_sharing = 1;
pub const EP_FREE: ep_sharing = 2;

pub const EP_TASK_MAIN_THREAD: u64 = 1 << 0;
pub const EP_TASK_OWN_THREADS: u64 = 1 << 32;
pub const EP_TASK_NONDETERMINISTIC: u64 = 1 << 33;
pub const EP_TASK_MAY_BLOCK: u64 = 1 << 34;
pub const EP_TASK_STICKY: u64 = 1 << 35;

// ---- spec and options --------------------------------------------------------------------------

#[repr(C)]
pub struct ep_field {
    pub size: u32,
    pub role: ep_role,
    pub kind: ep_kind,
    pub dtype: ep_dtype,
    pub name: *const c_char,
    pub doc: *const c_char,
    pub unit: *const c_char,
    pub shape: *const i64,
    pub low: *const c_void,
    pub high: *const c_void,
    pub n: *const i64,
    pub start: *const i64,
    pub rank: u32,
    pub bound_count: u32,
    pub flags: u32,
    pub group: u32,
    pub layout: ep_layout,
    pub reserved: u32,
    pub meaning: *const c_char,
    pub labels: *const *const c_char,
    pub palette: *const u8,
    pub gray: *const u8,
}

#[repr(C)]
pub struct ep_value {
    pub r#type: ep_type,
    pub dtype: ep_dtype,
    pub i: i64,
    pub f: f64,
    pub s: *const c_char,
    pub data: *const c_void,
    pub count: u64,
}

#[repr(C)]
pub struct ep_option {
    pub size: u32,
    pub flags: u32,
    pub name: *const c_char,
    pub doc: *const c_char,
    pub unit: *const c_char,
    pub def: ep_value,
    pub min: *const ep_value,
    pub max: *const ep_value,
    pub choices: *const ep_value,
    pub choice_count: u32,
    pub reserved: u32,
}

#[repr(C)]
pub struct ep_spec {
    pub size: u32,
    pub max_agents: u32,
    pub max_episode_steps: i64,
    pub reward_threshold: f64,
    pub fps: f64,
    pub ctx: *mut c_void,
    pub add: unsafe extern "C" fn(spec: *mut ep_spec, field: *const ep_field) -> ep_status,
}

// ---- host --------------------------------------------------------------------------------------

#[repr(C)]
pub struct ep_host {
    pub size: u32,
    pub abi_major: u16,
    pub abi_minor: u16,
    pub ctx: *mut c_void,
    pub name: *const c_char,
    pub version: *const c_char,
    pub extension: unsafe extern "C" fn(host: *const ep_host, id: *const c_char) -> *const c_void,
    pub log: unsafe extern "C" fn(host: *const ep_host, level: i32, text: *const c_char),
    pub explain: unsafe extern "C" fn(host: *const ep_host, text: *const c_char),
    pub asset: unsafe extern "C" fn(
        host: *const ep_host,
        name: *const c_char,
        buf: *mut c_char,
        cap: u64,
        len: *mut u64,
    ) -> ep_status,
    pub cancelled: unsafe extern "C" fn(host: *const ep_host) -> i32,
}

// ---- running -----------------------------------------------------------------------------------

#[repr(C)]
pub struct ep_input {
    pub size: u32,
    pub agents: u32,
    pub action: *const *const c_void,
    pub action_length: *const *const u32,
}

#[repr(C)]
pub struct ep_result {
    pub size: u32,
    pub agents: u32,
    pub reward: *mut f64,
    pub terminated: *mut u8,
    pub truncated: *mut u8,
    pub alive: *mut u8,
    pub episode_over: *mut u8,
}

#[repr(C)]
pub struct ep_view {
    pub size: u32,
    pub agents: u32,
    pub obs: *const *mut c_void,
    pub info: *const *mut c_void,
    pub global: *const *mut c_void,
    pub obs_length: *const *mut u32,
    pub info_length: *const *mut u32,
    pub global_length: *const *mut u32,
}

#[repr(C)]
pub struct ep_reset {
    pub size: u32,
    pub has_seed: u32,
    pub seed: u64,
    pub options: *const ep_value,
    pub option_count: u32,
    pub reserved: u32,
}

#[repr(C)]
pub struct ep_create {
    pub size: u32,
    pub option_count: u32,
    pub options: *const ep_value,
    pub env_id: u64,
}

#[repr(C)]
pub struct ep_task {
    pub size: u32,
    pub sharing: ep_sharing,
    pub flags: u64,
    pub id: *const c_char,
    pub doc: *const c_char,
    pub options: *const *const ep_option,
    pub option_count: u32,
    pub reserved: u32,
    pub describe: unsafe extern "C" fn(
        host: *const ep_host,
        info: *const ep_create,
        spec: *mut ep_spec,
    ) -> ep_status,
    pub create: unsafe extern "C" fn(
        host: *const ep_host,
        info: *const ep_create,
        env: *mut *mut c_void,
    ) -> ep_status,
    pub reset: unsafe extern "C" fn(env: *mut c_void, how: *const ep_reset) -> ep_status,
    pub step: unsafe extern "C" fn(
        env: *mut c_void,
        input: *const ep_input,
        out: *const ep_result,
    ) -> ep_status,
    pub observe: unsafe extern "C" fn(env: *mut c_void, out: *const ep_view) -> ep_status,
    pub destroy: unsafe extern "C" fn(env: *mut c_void),
    pub extension: Option<unsafe extern "C" fn(id: *const c_char) -> *const c_void>,
}

#[repr(C)]
pub struct ep_plugin {
    pub size: u32,
    pub abi_major: u16,
    pub abi_minor: u16,
    pub host_minor: u16,
    pub reserved: u16,
    pub task_count: u32,
    pub tasks: *const *const ep_task,
    pub name: *const c_char,
    pub version: *const c_char,
    pub license: *const c_char,
    pub url: *const c_char,
}

// ---- extensions --------------------------------------------------------------------------------

pub const EP_EXT_AGENTS: &str = "envpool.agents/1";
pub const EP_EXT_BATCH: &str = "envpool.batch/1";
pub const EP_EXT_PLACEMENT: &str = "envpool.placement/1";
pub const EP_EXT_RENDER: &str = "envpool.render/1";
pub const EP_EXT_STATE: &str = "envpool.state/1";

#[repr(C)]
pub struct ep_agents {
    pub size: u32,
    pub group_count: u32,
    pub name: unsafe extern "C" fn(agent: u32) -> *const c_char,
    pub group: unsafe extern "C" fn(group: u32) -> *const c_char,
}

#[repr(C)]
pub struct ep_column {
    pub data: *mut c_void,
    pub row_bytes: u64,
}

#[repr(C)]
pub struct ep_rows {
    pub size: u32,
    pub count: u32,
    pub env: *const *mut c_void,
    pub r#in: *const u32,
    pub out: *const u32,
    pub action: *const ep_column,
    pub obs: *const ep_column,
    pub info: *const ep_column,
    pub reward: *mut f64,
    pub terminated: *mut u8,
    pub truncated: *mut u8,
    pub status: *mut ep_status,
}

#[repr(C)]
pub struct ep_batch {
    pub size: u32,
    pub reserved: u32,
    pub step_many: unsafe extern "C" fn(rows: *const ep_rows) -> ep_status,
}

#[repr(C)]
pub struct ep_placement {
    pub size: u32,
    pub reserved: u32,
    pub worker:
        unsafe extern "C" fn(host: *const ep_host, cpus: *mut i32, cap: u32, n: *mut u32) -> i32,
}

pub const EP_RGB8: i32 = 1;
pub const EP_RGBA8: i32 = 2;
pub const EP_DEPTH_F32: i32 = 3;
pub const EP_ANSI: i32 = 4;

#[repr(C)]
pub struct ep_image {
    pub size: u32,
    pub format: i32,
    pub width: u32,
    pub height: u32,
    pub camera: u32,
    pub reserved: u32,
    pub row_bytes: u64,
    pub pixels: *mut c_void,
}

#[repr(C)]
pub struct ep_render {
    pub size: u32,
    pub formats: u32,
    pub measure: unsafe extern "C" fn(env: *mut c_void, image: *mut ep_image) -> ep_status,
    pub draw: unsafe extern "C" fn(env: *mut c_void, image: *const ep_image) -> ep_status,
}

pub const EP_STATE_CLONE: i32 = 1;
pub const EP_STATE_PERSIST: i32 = 2;

#[repr(C)]
pub struct ep_writer {
    pub ctx: *mut c_void,
    pub write: unsafe extern "C" fn(
        writer: *const ep_writer,
        data: *const c_void,
        bytes: u64,
    ) -> ep_status,
}

#[repr(C)]
pub struct ep_state {
    pub size: u32,
    pub purposes: u32,
    pub save:
        unsafe extern "C" fn(env: *mut c_void, purpose: i32, writer: *const ep_writer) -> ep_status,
    pub load: unsafe extern "C" fn(
        env: *mut c_void,
        purpose: i32,
        data: *const c_void,
        bytes: u64,
    ) -> ep_status,
}
