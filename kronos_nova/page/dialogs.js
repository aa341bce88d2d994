/* Dialogs that ask before an action, and messages with its result. */

import { byId, el, button } from './elements.js';

const TOLD_MS = 8000;

export function tell(text) {
  const line = el('div', {}, text);
  byId('notice').append(line);
  setTimeout(() => line.remove(), TOLD_MS);
}

function input({name, label, type = 'text', options, value, required, autocomplete}) {
  if (type === 'check') return el('label', {class: 'check'}, el('input', {type: 'checkbox', name, checked: Boolean(value)}), label);
  const field = type === 'select' ? el('select', {name}, options.map(each => el('option', {value: each, selected: each === value}, each)))
    : el('input', {type, name, value: value ?? '', required: Boolean(required), autocomplete: autocomplete ?? 'off', maxlength: 1000});
  return el('label', {}, label, field);
}

export const fieldsOf = fields => fields.map(input);

/* The values of a form, by name. */
export function valuesOf(form) {
  return Object.fromEntries([...form.elements].filter(field => field.name).map(field => [field.name, field.type === 'checkbox' ? field.checked : field.name === 'password' ? field.value : field.value.trim()]));
}

/* Resolves to the values of the form, or to null when it was cancelled. */
export function ask({title, text = [], fields = [], confirm, isDangerous = false}) {
  return new Promise(resolve => {
    let given = null;
    const form = el('form', {class: 'fields', method: 'dialog'}, [text].flat().map(line => typeof line === 'string' ? el('div', {}, line) : line),
      fieldsOf(fields), el('div', {class: 'buttons'},
        button('Cancel', () => dialog.close(), {autofocus: fields.length === 0}),
        el('button', {type: 'submit', class: isDangerous ? 'danger' : 'main', id: 'confirm'}, confirm)));
    const dialog = el('dialog', {'aria-labelledby': 'dialog-title'}, el('h2', {id: 'dialog-title'}, title), form);
    form.addEventListener('submit', event => { event.preventDefault(); given = valuesOf(form); dialog.close(); });
    dialog.addEventListener('close', () => { dialog.remove(); resolve(given); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

export function show(title, ...content) {
  const dialog = el('dialog', {'aria-labelledby': 'dialog-title'}, el('h2', {id: 'dialog-title'}, title), content,
    el('div', {class: 'buttons'}, button('Close', () => dialog.close())));
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
