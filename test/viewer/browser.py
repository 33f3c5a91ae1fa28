"""Headless Chromium with the page of a robot."""

import io
import shutil
import time
from contextlib import suppress

import numpy as np
import pytest

CHROMIUM, DRIVER = shutil.which('chromium'), shutil.which('chromedriver')
try:
    from selenium import webdriver
    from selenium.common.exceptions import ElementClickInterceptedException, StaleElementReferenceException
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
except ImportError:
    webdriver = None

needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER and webdriver),
    reason='needs Chromium: apt-get install chromium chromium-driver, pip install selenium',
)
FLAGS = (
    '--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking '
    '--disable-component-update --disable-sync --use-gl=angle --use-angle=swiftshader '
    '--enable-unsafe-swiftshader --disable-dev-shm-usage'
)
PATIENCE = 60.0  # software rendering on a busy machine is slow [s]
HARMLESS = ('ReadPixels', 'THREE.Clock')  # warnings of three.js and of software rendering
ENTER = """
Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(arguments[0], arguments[1]);
arguments[0].dispatchEvent(new Event('input', {bubbles: true}));
"""
PANEL = 380  # width of a panel at the side of the scene [pixels]


class Browser:
    """A window; every further page is a tab of it.

    The page redraws itself at any time, so what it shows is read by one script, not element by element.
    """

    def __init__(self, folder, size=(1000, 600)):
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        window = f'--window-size={size[0]},{size[1]}'
        for flag in (*FLAGS.split(), window, f'--user-data-dir={folder}'):
            options.add_argument(flag)
        options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
        self._driver = webdriver.Chrome(options=options, service=Service(DRIVER))

    def open(self, url):
        self._driver.get(url)
        self.until(lambda: self.text, 'the page to open')

    def open_tab(self, url):
        self._driver.switch_to.new_window('tab')
        self.open(url)

    def switch(self, number):
        self._driver.switch_to.window(self._driver.window_handles[number])

    def close(self):
        self._driver.quit()

    @property
    def text(self):
        """All visible text."""
        return self._driver.execute_script('return document.body ? document.body.innerText : ""')

    @property
    def buttons(self):
        return self._driver.execute_script(
            'return Array.from(document.querySelectorAll("button"), b => b.innerText).filter(Boolean)'
        )

    def until(self, condition, what, patience=PATIENCE):
        """Wait for a condition; returns after how many seconds it held."""
        start = time.monotonic()
        while not condition():
            assert time.monotonic() - start < patience, f'waited for {what}; the page says:\n{self.text}'
            time.sleep(0.05)
        return time.monotonic() - start

    def until_text(self, text, patience=PATIENCE):
        return self.until(lambda: text in self.text, f'{text!r}', patience)

    def click(self, name):
        """Click the button of that name once it is there and nothing covers it."""

        def clicked():
            with suppress(StaleElementReferenceException, ElementClickInterceptedException):
                for button in self._driver.find_elements(By.TAG_NAME, 'button'):
                    if button.text == name:
                        button.click()
                        return True
            return False

        self.until(clicked, f'the button {name!r}')

    def enter(self, label, value):
        """Write a number into the field beside a slider, all digits at once."""
        place = f'//*[text()="{label}"]/following::input[not(@type="hidden")][1]'
        self._driver.execute_script(ENTER, self._driver.find_element(By.XPATH, place), str(value))

    def hide_notifications(self):
        """Such as viser's remark on software rendering."""
        style = '<style>.mantine-Notification-root{display:none}</style>'
        self._driver.execute_script('document.head.insertAdjacentHTML("beforeend", arguments[0])', style)

    def colour_of(self, text):
        """Computed colour of the innermost element with this text, as red, green, blue."""
        colour = self._driver.execute_script(
            'const all = document.querySelectorAll("*"), has = e => e.innerText?.includes(arguments[0]);'
            'return getComputedStyle([...all].filter(has).at(-1)).color',
            text,
        )
        return tuple(int(word) for word in colour.strip('rgba()').split(',')[:3])

    def picture(self):
        from PIL import Image

        return Image.open(io.BytesIO(self._driver.get_screenshot_as_png())).convert('RGB')

    def scene(self):
        """Pixels between the panels."""
        return np.asarray(self.picture()).astype(int)[:, PANEL:-PANEL]

    def errors(self):
        """Messages on the console that are no information."""
        return [
            entry['message']
            for entry in self._driver.get_log('browser')
            if entry['level'] in ('WARNING', 'SEVERE')
            and not any(word in entry['message'] for word in HARMLESS)
        ]


def changed(before, after):
    """Share of the pixels that differ clearly."""
    return float((np.abs(before - after).max(axis=2) > 40).mean())
