#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| procession_fuzz::run("import_airflow", input));
