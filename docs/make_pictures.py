"""`make pictures`: the page with recorded demonstrations, a fault and a report, by Chromium."""

import io
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

PICTURES = Path(__file__).parent / 'pictures'
ROBOTS = {'krang': 5.65, 'otbot': 8.0, 'pendubot': 4.0, 'planar_2r': 3.0, 'anthropomorphic': 3.0}  # when [s]
SIZE = (1280, 900)  # of the window; the page has 143 pixels less
PAST, STEPS = 3.0, 15  # of a picture [s]
FADE = 6.0  # until the scene is fully visible with software rendering [s]
DRAWN = 0.3  # from a change to its picture, with software rendering [s]
START, FRAMES, FRAME_PERIOD = 1.0, 32, 0.15  # of the animation [s]
WIDTH = 680  # of the animation [pixels]
FLAGS = (
    '--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-sync '
    '--use-gl=angle --use-angle=swiftshader --enable-unsafe-swiftshader --disable-dev-shm-usage'
)
ENTER = """
Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(arguments[0], arguments[1]);
arguments[0].dispatchEvent(new Event('input', {bubbles: true}));
"""  # all digits at once
SOFTWARE = 'document.querySelectorAll(".mantine-Notification-root").forEach(n => n.remove())'


def main():
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    os.environ['ROS_DOMAIN_ID'] = str(random.randint(1, 101))
    with tempfile.TemporaryDirectory() as folder:
        bags = {robot: record(robot, Path(folder)) for robot in sys.argv[1:] or ROBOTS}
        browser = open_browser(folder)
        try:
            for robot, bag in bags.items():
                picture_of(browser, robot, bag)
            if 'krang' in bags:
                picture_fault(browser)
            if 'planar_2r' in bags:
                picture_report(browser, bags['planar_2r'])
        finally:
            browser.quit()


def record(robot, folder):
    """The bag of a demonstration. Slow rendering does not matter to a recording."""
    bag = folder / f'{robot}_bag'
    words = krang('demo', robot, '--picture', f'{folder}/{robot}.png', '--record', str(bag), '--force')
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return bag


def open_browser(folder):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which('chromium')
    for flag in (*FLAGS.split(), f'--window-size={SIZE[0]},{SIZE[1]}', f'--user-data-dir={folder}/chromium'):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service(shutil.which('chromedriver')))


@contextmanager
def page(browser, *words):
    """`krang view` in the browser."""
    view = subprocess.Popen(krang('view', *words), stdout=subprocess.PIPE, text=True)
    try:
        browser.get(re.search(r'http\S+', view.stdout.readline())[0])
        time.sleep(FADE)
        browser.execute_script(SOFTWARE)
        yield
    finally:
        view.terminate()
        view.wait(20)


def picture_of(browser, robot, bag):
    """The page of one robot in motion; of Krang also an animation."""
    with page(browser, robot, '--bag', str(bag)):
        until(lambda: 'time [s]' in text(browser))
        pause(browser)
        if robot == 'krang':
            animate(browser)
        else:
            for step in range(STEPS + 1):  # charts and trails need a past
                move(browser, ROBOTS[robot] - PAST + PAST / STEPS * step)
        time.sleep(2 * DRAWN)
        save(browser, f'page_{robot}')


def picture_fault(browser):
    """The page of a running robot after its emergency stop was pressed."""
    words = krang('sim', 'krang', '--control')
    sim = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with page(browser, 'krang'):
            until(lambda: 'Torque follows' in text(browser))
            click(browser, 'EMERGENCY STOP')
            until(lambda: 'the emergency stop is pressed' in text(browser))
            time.sleep(2.0)
            save(browser, 'page_fault')
    finally:
        sim.terminate()
        sim.wait(60)


def picture_report(browser, bag):
    report = bag.with_name('report.html')
    words = krang('validate', bag.name, '--robot', 'planar_2r', '--html', report.name)
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, cwd=bag.parent)
    browser.get(f'file://{report}')
    time.sleep(1.0)
    save(browser, 'report')


def animate(browser):
    frames = []
    for number in range(FRAMES):
        move(browser, START + FRAME_PERIOD * number)
        time.sleep(DRAWN)
        frames.append(picture(browser))
        print(f'frame {number + 1} of {FRAMES}', end='\r', file=sys.stderr, flush=True)
    height = WIDTH * frames[0].height // frames[0].width
    small = [frame.resize((WIDTH, height), Image.Resampling.LANCZOS) for frame in frames]
    palette = small[FRAMES // 2].quantize(128, Image.Quantize.FASTOCTREE)
    flat = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in small]
    duration = round(1000 * FRAME_PERIOD)
    flat[0].save(PICTURES / 'page.gif', save_all=True, append_images=flat[1:], duration=duration, loop=0)


def move(browser, seconds):
    """Write a time into the field beside the slider of the recording, until the page shows it."""
    place = '//*[text()="time [s]"]/following::input[not(@type="hidden")][1]'
    while abs(shown_time(browser) - seconds) > 0.06:
        field = browser.find_element(By.XPATH, place)
        browser.execute_script(ENTER, field, f'{seconds:.2f}')
        time.sleep(0.3)


def shown_time(browser):
    return float(re.search(r'Recording, ([\d.]+) s', text(browser))[1])


def pause(browser):
    """Also if the recording ends at the same time, when the button starts it again."""
    while 'Pause' in text(browser):
        click(browser, 'Pause')
        time.sleep(2.0)


def click(browser, name):
    browser.find_element(By.XPATH, f'//button[contains(., "{name}")]').click()


def text(browser):
    return browser.find_element(By.TAG_NAME, 'body').text


def until(condition, patience=60.0):
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            sys.exit('the page does not show what was expected')
        time.sleep(0.1)


def save(browser, name):
    picture(browser).quantize(256, dither=Image.Dither.NONE).save(PICTURES / f'{name}.png', optimize=True)
    print(PICTURES / f'{name}.png', flush=True)


def picture(browser):
    return Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert('RGB')


def krang(*words):
    return [sys.executable, '-m', 'krang_dynamics.cli.main', *words]


if __name__ == '__main__':
    main()
