import js from '@eslint/js';
import tseslint from 'typescript-eslint';

// Everything shown comes from a kernel or a file: markup is never made from text.
const MARKUP = [
  'innerHTML',
  'outerHTML',
  'insertAdjacentHTML',
  'setHTMLUnsafe',
  'createContextualFragment'
];

export default tseslint.config(
  { ignores: ['lib/', 'node_modules/', 'src/page_texts.ts'] },
  js.configs.recommended,
  {
    files: ['src/**/*.ts'],
    extends: [...tseslint.configs.strictTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname }
    },
    rules: {
      // Lumino's signals are given the object beside the method.
      '@typescript-eslint/unbound-method': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      'no-restricted-properties': ['error', ...MARKUP.map(property => ({ property }))],
      'no-eval': 'error',
      'no-implied-eval': 'error'
    }
  },
  {
    files: ['test/**', 'tools/**'],
    languageOptions: {
      globals: {
        console: 'readonly',
        structuredClone: 'readonly',
        process: 'readonly',
        URL: 'readonly'
      }
    }
  }
);
