/* Light or dark: the preference of the system, unless the user has chosen. */

import { byId } from './elements.js';

const KEPT_AS = 'kronos-theme';
const dark = matchMedia('(prefers-color-scheme: dark)');

/* A page that is opened as a file may have no storage. */
function kept(value) {
  try {
    if (value !== undefined) localStorage.setItem(KEPT_AS, value);
    return localStorage.getItem(KEPT_AS);
  } catch {
    return value;
  }
}

export function startTheme() {
  const choice = byId('theme');
  const show = () => {
    const wanted = choice.value;
    document.documentElement.dataset.theme = wanted === 'system' ? (dark.matches ? 'dark' : 'light') : wanted;
    document.dispatchEvent(new Event('themechange'));
  };
  const before = kept();
  choice.value = ['light', 'dark'].includes(before) ? before : 'system';
  choice.addEventListener('change', () => { kept(choice.value); show(); });
  dark.addEventListener('change', show);
  show();
}
