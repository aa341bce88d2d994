/* The login: with a token, or with a name and a password that kronos-api passes to keystone. */

import { byId, el, button } from './elements.js';
import { fieldsOf, valuesOf } from './dialogs.js';

const PASSWORD = [
  {name: 'user', label: 'User', required: true, autocomplete: 'username'},
  {name: 'password', label: 'Password', type: 'password', required: true, autocomplete: 'current-password'},
  {name: 'user_domain', label: 'Domain of the user', value: 'Default', required: true},
  {name: 'project', label: 'Project (empty: the whole system)'},
  {name: 'project_domain', label: 'Domain of the project', value: 'Default'}];
const TOKEN = [{name: 'token', label: 'Token ("openstack token issue -f value -c id")', type: 'password', required: true}];

async function byPassword(client, given) {
  const {project, project_domain: domain, ...who} = given;
  const answer = await client.send('POST', 'ui/login', {...who, ...(project ? {project, project_domain: domain || 'Default'} : {})});
  return answer.token;
}

/* Kinds of login that the server accepts, the preferred one first. */
const WAYS = {password: PASSWORD, token: TOKEN};
const taken = () => document.querySelector('meta[name=kronos-logins]').content.split(' ').filter(way => way in WAYS);

/* A form that is shown until a login succeeds; `enter` is called with the token and throws when it is refused. */
function made(client, message, enter, ...others) {
  const said = el('div', {role: 'alert', class: 'bad'}, message);
  const submit = el('button', {type: 'submit', class: 'main'}, 'Log in');
  const form = el('form', {class: 'fields', id: 'login'});
  const ways = taken();
  let [way] = ways;
  const draw = () => {
    choices.forEach((each, n) => each.setAttribute('aria-pressed', String(ways[n] === way)));
    form.replaceChildren(...fieldsOf(WAYS[way]), el('div', {class: 'buttons'}, others, submit));
  };
  const choices = ways.map(each => button(each === 'token' ? 'Token' : 'Password', () => { way = each; draw(); }, {id: `by-${each}`}));
  form.addEventListener('submit', async event => {
    event.preventDefault();
    submit.disabled = true;
    said.textContent = '';
    try {
      const given = valuesOf(form);
      await enter(way === 'token' ? given.token : await byPassword(client, given));
    } catch (error) {
      said.textContent = error.message;
    }
    submit.disabled = false;
  });
  draw();
  return [el('h2', {id: 'login-title'}, 'Log in with keystone'),
    ways.length > 1 ? el('div', {class: 'tools pair', role: 'group', 'aria-label': 'Log in by'}, choices) : null, said, form];
}

/* Shows the form instead of the page. */
export function login(client, message, enter) {
  const entry = el('section', {class: 'entry'}, made(client, message, enter));
  byId('content').replaceChildren(entry);
  entry.querySelector('input').focus();
}

/* Shows the form above the page, which does not change; `leave` is called when the user cancels. */
export function loginAgain(client, message, enter, leave) {
  let isIn = false;
  const before = document.activeElement;
  const dialog = el('dialog', {'aria-labelledby': 'login-title'}, made(client, message, async token => {
    await enter(token);
    isIn = true;
    dialog.close();
  }, button('Log out', () => dialog.close())));
  dialog.addEventListener('close', () => {
    dialog.remove();
    if (!isIn) return leave();
    // Chromium returns the focus, but no key, to an element of another dialog.
    before.blur();
    before.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  dialog.querySelector('input').focus();
}
