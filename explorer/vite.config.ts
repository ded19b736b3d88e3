import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

// The whole program becomes one HTML file, which needs no other file and no network.
export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  build: { target: "es2022", outDir: "dist", emptyOutDir: true, cssMinify: true },
  server: { proxy: { "/v1": "http://127.0.0.1:8321" } },
});
