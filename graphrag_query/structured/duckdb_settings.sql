-- The order matters: the last setting locks the settings before it.
SET autoinstall_known_extensions = false;
SET autoload_known_extensions = false;
SET enable_progress_bar = false;
SET temp_directory = '';
SET enable_external_access = false;
SET lock_configuration = true;
