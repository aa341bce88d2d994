/* Who are you: a token, or a name and a password that kronos-api shows to keystone. */

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

/* Shows the form until somebody is in; `enter` is given the token and throws where it does not do. */
export function login(client, message, enter) {
  const said = el('div', {role: 'alert', class: 'bad'}, message);
  const submit = el('button', {type: 'submit', class: 'main'}, 'Log in');
  const form = el('form', {class: 'fields', id: 'login'});
  let isToken = false;
  const draw = () => {
    choices.forEach((each, n) => each.setAttribute('aria-pressed', String(isToken === (n === 1))));
    form.replaceChildren(...fieldsOf(isToken ? TOKEN : PASSWORD), submit);
  };
  const choices = ['Password', 'Token'].map((name, n) => button(name, () => { isToken = n === 1; draw(); }, {id: `by-${name.toLowerCase()}`}));
  form.addEventListener('submit', async event => {
    event.preventDefault();
    submit.disabled = true;
    said.textContent = '';
    try {
      const given = valuesOf(form);
      await enter(isToken ? given.token : await byPassword(client, given));
    } catch (error) {
      said.textContent = error.message;
    }
    submit.disabled = false;
  });
  draw();
  byId('content').replaceChildren(el('section', {class: 'entry'}, el('h2', {}, 'Log in with keystone'),
    el('div', {class: 'tools pair', role: 'group', 'aria-label': 'Log in by'}, choices), said, form));
  form.querySelector('input').focus();
}
